/* Reads handwritten digits by their nearest neighbour, with the images in F32, fp8 and I8: how scales and amax work.

   The nearest of the known images t to an image x has the largest x . t - |t|^2 / 2: one product, whose bias is the
   second term. Eight bits hold the images at a quarter of the memory and of the traffic, up to a scale for all of them.

       fp8 [path to digits.csv] */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <stdio.h>
#include <stdlib.h>

enum { PIXELS = 64, MOST = 2000 };

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK) {
        fprintf(stderr, "%s: %s\n", gemmepi_status_name(status), gemmepi_last_error());
        exit(1);
    }
}

typedef struct images {
    float pixels[MOST][PIXELS]; /* less their mean */
    float bias[MOST];           /* -|t|^2 / 2 */
    int labels[MOST], count;
} images;

/* Every fourth image is for testing. */
static void load(const char *path, images *known, images *unknown) {
    float mean[PIXELS] = {0};
    FILE *file = fopen(path, "r");
    if (!file) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
    for (int line = 0; line < MOST; line++) {
        images *to = line % 4 == 3 ? unknown : known;
        int complete = 1;
        for (int i = 0; i < PIXELS; i++)
            complete = complete && fscanf(file, "%f,", &to->pixels[to->count][i]) == 1;
        if (!complete || fscanf(file, "%d", &to->labels[to->count]) != 1)
            break;
        to->count++;
    }
    fclose(file);
    for (int t = 0; t < known->count; t++)
        for (int i = 0; i < PIXELS; i++)
            mean[i] += known->pixels[t][i] / (float)known->count;
    for (int t = 0; t < MOST; t++)
        for (int i = 0; i < PIXELS; i++) {
            known->pixels[t][i] -= mean[i];
            unknown->pixels[t][i] -= mean[i];
            known->bias[t] -= known->pixels[t][i] * known->pixels[t][i] / 2;
        }
}

static void *to_device(gemmepi_context *context, const void *data, size_t bytes) {
    void *device;
    check(gemmepi_alloc(context, bytes, &device));
    check(gemmepi_upload(context, device, data, bytes, NULL));
    return device;
}

/* Images in eight bits, and the scale that gives their values back, both on the device. */
typedef struct narrow {
    void *pixels;
    float *scale;
} narrow;

/* A product with no terms, k = 0, leaves D = round(scale_d * C): a cast. The first asks for the largest |C| alone. */
static narrow cast(gemmepi_context *context, const float *pixels, int count, gemmepi_dtype dtype) {
    float largest = dtype == GEMMEPI_I8 ? 127 : dtype == GEMMEPI_E4M3 ? 448 : 57344, amax, factor = 1;
    double beta = 1;
    narrow result;
    check(gemmepi_alloc(context, (size_t)count * PIXELS, &result.pixels));
    result.scale = to_device(context, &factor, sizeof factor);

    gemmepi_matmul_desc desc = {.m = count, .n = PIXELS, .k = 0, .flags = GEMMEPI_AMAX_D};
    desc.c.dtype = GEMMEPI_F32;
    desc.d.dtype = dtype;
    desc.d.scale.mode = GEMMEPI_SCALE_TENSOR;
    gemmepi_matmul_args args = {.c = pixels, .beta = &beta, .d = result.pixels, .scale_d = result.scale};
    args.amax_d = to_device(context, &factor, sizeof factor);
    check(gemmepi_matmul(context, &desc, &args, NULL));
    check(gemmepi_download(context, &amax, args.amax_d, sizeof amax, NULL));

    factor = largest / amax;
    check(gemmepi_upload(context, result.scale, &factor, sizeof factor, NULL));
    check(gemmepi_matmul(context, &desc, &args, NULL));
    factor = 1 / factor;
    check(gemmepi_upload(context, result.scale, &factor, sizeof factor, NULL));
    check(gemmepi_free(context, args.amax_d));
    return result;
}

/* The percentage of unknown images whose nearest known image has their label. desc and args have a and b. */
static double accuracy(gemmepi_context *context, gemmepi_matmul_desc desc, gemmepi_matmul_args args,
                       const images *known, const images *unknown) {
    size_t bytes = (size_t)known->count * (size_t)unknown->count * sizeof(float);
    float *scores = malloc(bytes);
    void *bias = to_device(context, known->bias, sizeof known->bias), *d;
    int right = 0;
    if (!scores)
        exit(1);
    check(gemmepi_alloc(context, bytes, &d));
    desc.m = unknown->count, desc.n = known->count, desc.k = PIXELS;
    desc.b.transposed = 1; /* an image is a row of either */
    desc.d.dtype = GEMMEPI_F32;
    desc.epilogue = GEMMEPI_BIAS;
    args.bias = bias, args.d = d;
    check(gemmepi_matmul(context, &desc, &args, NULL));
    check(gemmepi_download(context, scores, d, bytes, NULL));
    for (int x = 0; x < unknown->count; x++) {
        const float *row = scores + (size_t)x * (size_t)known->count;
        int best = 0;
        for (int t = 1; t < known->count; t++)
            best = row[t] > row[best] ? t : best;
        right += known->labels[best] == unknown->labels[x];
    }
    check(gemmepi_free(context, bias));
    check(gemmepi_free(context, d));
    free(scores);
    return 100.0 * right / unknown->count;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        gemmepi_dtype dtype;
    } types[] = {{"E4M3", GEMMEPI_E4M3}, {"E5M2", GEMMEPI_E5M2}, {"I8", GEMMEPI_I8}};
    static images known, unknown;
    gemmepi_context *context;
    gemmepi_context_details details;
    gemmepi_matmul_desc desc = {0};
    gemmepi_matmul_args args = {0};
    load(argc > 1 ? argv[1] : "data/digits.csv", &known, &unknown);
    check(gemmepi_create(NULL, &context));
    check(gemmepi_context_info(context, &details));
    if (details.fallback_reason[0])
        fprintf(stderr, "no GPU is used: %s\n", details.fallback_reason);
    void *x = to_device(context, unknown.pixels, sizeof unknown.pixels);
    void *t = to_device(context, known.pixels, sizeof known.pixels);
    args.a = x, args.b = t;
    printf("%d images by their nearest of %d\n", unknown.count, known.count);
    printf("F32   %.1f %% right\n", accuracy(context, desc, args, &known, &unknown));

    for (int i = 0; i < 3; i++) {
        narrow a = cast(context, x, unknown.count, types[i].dtype);
        narrow b = cast(context, t, known.count, types[i].dtype);
        desc.a.dtype = desc.b.dtype = types[i].dtype;
        desc.a.scale.mode = desc.b.scale.mode = GEMMEPI_SCALE_TENSOR;
        args.a = a.pixels, args.scale_a = a.scale;
        args.b = b.pixels, args.scale_b = b.scale;
        printf("%-5s %.1f %% right\n", types[i].name, accuracy(context, desc, args, &known, &unknown));
        check(gemmepi_free(context, a.pixels));
        check(gemmepi_free(context, a.scale));
        check(gemmepi_free(context, b.pixels));
        check(gemmepi_free(context, b.scale));
    }
    check(gemmepi_free(context, x));
    check(gemmepi_free(context, t));
    gemmepi_destroy(context);
    return 0;
}
