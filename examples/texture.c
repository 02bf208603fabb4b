/* A neural texture: a small network learns a picture's colours from where a pixel is, and is stored in place of the picture, 16 bits a
   weight. Its first layer has sines of random directions (Fourier features); a seed makes them again, and they are not stored. The
   network is one kernel forward and one backward on a GPU: gemmepi_network. The loss and Adam are formulas over tensors.

   It writes texture.bin, reads it back, draws the picture from it next to the original in a PNG, and prints both sizes and the
   PSNR. On the GPU if there is one, else on the host, with --small.
   (Tancik et al., Fourier Features Let Networks Learn High Frequency Functions in Low Dimensional Domains, 2020.)

       texture [--small] [--host] [--epochs N] [--seed N] [--png PATH] [--bin PATH] [PICTURE.ppm] */
#define _POSIX_C_SOURCE 200112L /* clock_gettime */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <time.h>
#define PROGRAM "texture"
#include "picture.h"

static gemmepi_context *context;

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK)
        fail(gemmepi_status_name(status), gemmepi_last_error());
}

static double seconds(void) {
#ifdef _WIN32
    return (double)clock() / CLOCKS_PER_SEC; /* not the processor's time there */
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
#endif
}

/* From 0 to below 1, by splitmix64: a generator of our own, so that a seed means the same everywhere. */
static double uniform(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0; /* 2^53 */
}

/* ---- memory of the device ---- */

enum { MOST_BLOCKS = 16 };
static void *blocks[MOST_BLOCKS];
static int block_count;

static void *reserve(size_t count, size_t size) {
    void *zeros = allocate(count, size), *there;
    check(gemmepi_alloc_from(context, zeros, count * size, &there));
    free(zeros);
    return blocks[block_count++] = there;
}

/* Numbers of the host, rounded to F16 on the device: a formula over a tensor. */
static void store_as_f16(const float *from, void *to, int64_t count) {
    void *there;
    gemmepi_tensor x = {.rank = 1, .shape = &count}, y = {.dtype = GEMMEPI_F16, .rank = 1, .shape = &count};
    const gemmepi_elementwise_desc cast = {.operation = GEMMEPI_OP_CAST, .a = &x, .y = &y};
    check(gemmepi_alloc_from(context, from, (size_t)count * sizeof *from, &there));
    x.data = there, y.data = to;
    check(gemmepi_elementwise(context, &cast, NULL, NULL));
    check(gemmepi_free(context, there));
}

/* ---- the network ---- */

enum { LAYERS = 4, COORDINATES = 2, CHANNELS = 3 };

typedef struct network {
    gemmepi_network_layer layers[LAYERS];
    gemmepi_network_desc desc;
    gemmepi_network_args args;
    gemmepi_plan *forward, *backward, *compare, *adam;
    const void *w[LAYERS], *bias[LAYERS];
    void *dw[LAYERS], *dbias[LAYERS];
    int64_t features, count; /* weights of the first layer, which are not learnt, and of all */
    uint16_t *weights;       /* F16: weights, then biases of a layer, for all layers */
    float *exact, *gradients, *means, *squares; /* the same in F32, and what Adam keeps */
    uint16_t *x, *y, *dy, *target; /* [rows, 2] and [rows, 3] of all pixels; dy and y of a batch */
    float *loss;
    double rate;
} network;

/* Where a layer's weights begin, and biases. */
static void place_layers(network *net) {
    int64_t inputs = COORDINATES;
    for (int i = 0; i < LAYERS; i++) {
        const int64_t width = net->layers[i].width, bias = net->count + inputs * width;
        net->w[i] = net->weights + net->count, net->bias[i] = net->weights + bias;
        net->dw[i] = net->gradients + net->count, net->dbias[i] = net->gradients + bias;
        net->count = bias + width;
        if (i == 0)
            net->features = net->count;
        inputs = width;
    }
}

/* A seed's weights: the first layer's are of directions with a few waves across the picture, the others' as wide as keeps what goes through
   them as wide (He et al., 2015). */
static void draw_weights(const network *net, uint64_t seed, float *values) {
    int64_t inputs = COORDINATES, at = 0;
    for (int i = 0; i < LAYERS; i++) {
        const int64_t width = net->layers[i].width;
        for (int64_t j = 0; j < inputs * width; j++)
            if (i == 0)
                values[at++] =
                    (float)(10 * (uniform(&seed) + uniform(&seed) + uniform(&seed) + uniform(&seed) - 2) *
                            1.7);
            else
                values[at++] = (float)((2 * uniform(&seed) - 1) * sqrt(6.0 / (double)inputs));
        for (int64_t j = 0; j < width; j++)
            values[at++] = i ? 0 : (float)(6.2831853 * uniform(&seed));
        inputs = width;
    }
}

static void make_network(network *net, int width, int batch, int pixels) {
    static const gemmepi_network_layer layers[LAYERS] = {{.formula = "d = sin(v)"},
                                                         {.activation = GEMMEPI_RELU},
                                                         {.activation = GEMMEPI_RELU},
                                                         {.activation = GEMMEPI_SIGMOID}};
    memcpy(net->layers, layers, sizeof layers);
    for (int i = 0; i < LAYERS; i++)
        net->layers[i].width = i + 1 < LAYERS ? width : CHANNELS;
    const size_t most = (size_t)(width + 1) * (size_t)width * 3;
    net->weights = reserve(most, 2), net->exact = reserve(most, 4);
    net->gradients = reserve(most, 4), net->means = reserve(most, 4), net->squares = reserve(most, 4);
    net->x = reserve((size_t)pixels * COORDINATES, 2), net->target = reserve((size_t)pixels * CHANNELS, 2);
    net->y = reserve((size_t)batch * CHANNELS, 2), net->dy = reserve((size_t)batch * CHANNELS, 2);
    net->loss = reserve(1, 4);
    place_layers(net);
    const gemmepi_network_desc desc = {.rows = batch,
                                       .input = COORDINATES,
                                       .layers = net->layers,
                                       .layer_count = LAYERS,
                                       .dtype = GEMMEPI_F16,
                                       .gradient_dtype = GEMMEPI_F32,
                                       .alignment = 2,
                                       .flags = GEMMEPI_NETWORK_BIAS | GEMMEPI_NETWORK_DW};
    net->desc = desc;
    check(gemmepi_plan_network(context, &net->desc, &net->forward));
    check(gemmepi_plan_network_backward(context, &net->desc, &net->backward));
    check(gemmepi_plan_prepare(net->forward, NULL));
    check(gemmepi_plan_prepare(net->backward, NULL));
    net->args.y = net->y, net->args.dy = net->dy, net->args.w = net->w, net->args.bias = net->bias;
    net->args.dw = net->dw, net->args.dbias = net->dbias;
}

/* ---- formulas over tensors ---- */

static gemmepi_operand operand(const char *name, gemmepi_operand_kind kind, const gemmepi_tensor *tensor,
                               int output) {
    const gemmepi_operand made = {.name = name, .kind = kind, .tensor = tensor, .output = output};
    return made;
}

/* dy = 2 (y - target), and loss += the sum of its squares, before they are doubled */
static void plan_comparison(network *net) {
    const int64_t shape[2] = {net->desc.rows, CHANNELS}, one[2] = {1, 1};
    const gemmepi_tensor values = {.dtype = GEMMEPI_F16, .rank = 2, .shape = shape},
                         number = {.rank = 2, .shape = one};
    gemmepi_operand operands[3] = {operand("y", GEMMEPI_FULL, &values, 0),
                                   operand("target", GEMMEPI_FULL, &values, 0),
                                   operand("loss", GEMMEPI_SCALAR, &number, 1)};
    operands[2].accumulate = 1;
    const gemmepi_elementwise_desc desc = {.formula = "e = y - target; d = 2 * e; loss = all_sum(e * e)",
                                           .operands = operands,
                                           .operand_count = 3,
                                           .y = &values,
                                           .alignment = 2};
    check(gemmepi_plan_elementwise(context, &desc, &net->compare));
    check(gemmepi_plan_prepare(net->compare, NULL));
}

static void compare(network *net, int first) {
    void *pointers[3] = {net->y, net->target + (size_t)first * CHANNELS, net->loss};
    const gemmepi_elementwise_args args = {.y = net->dy, .operands = pointers};
    check(gemmepi_run_elementwise(net->compare, &args, NULL));
}

/* Adam in F32, and the weights in F16 besides. */
static void plan_adam(network *net) {
    const int64_t count = net->count - net->features;
    const gemmepi_tensor exact = {.rank = 1, .shape = &count},
                         rounded = {.dtype = GEMMEPI_F16, .rank = 1, .shape = &count};
    const gemmepi_operand operands[7] = {
        operand("w", GEMMEPI_FULL, &exact, 0),        operand("g", GEMMEPI_FULL, &exact, 0),
        operand("mean", GEMMEPI_FULL, &exact, 0),     operand("square", GEMMEPI_FULL, &exact, 0),
        operand("mean_now", GEMMEPI_FULL, &exact, 1), operand("square_now", GEMMEPI_FULL, &exact, 1),
        operand("rate", GEMMEPI_NUMBER, NULL, 0)};
    gemmepi_operand all[8];
    memcpy(all, operands, sizeof operands);
    all[7] = operand("w_now", GEMMEPI_FULL, &exact, 1);
    const gemmepi_elementwise_desc desc = {
        .formula = "mean_now = 0.9 * mean + 0.1 * g;"
                   "square_now = 0.99 * square + 0.01 * g * g;"
                   "w_now = w - rate * mean_now / (sqrt(square_now) + 1e-8); d = w_now",
        .operands = all,
        .operand_count = 8,
        .y = &rounded,
        .alignment = 2};
    check(gemmepi_plan_elementwise(context, &desc, &net->adam));
    check(gemmepi_plan_prepare(net->adam, NULL));
}

static void adam(network *net) {
    float *w = net->exact + net->features, *mean = net->means + net->features,
          *square = net->squares + net->features;
    void *pointers[8] = {w,      net->gradients + net->features, mean, square, mean,
                         square, gemmepi_number(&net->rate),     w};
    const gemmepi_elementwise_args args = {.y = net->weights + net->features, .operands = pointers};
    check(gemmepi_run_elementwise(net->adam, &args, NULL));
}

/* ---- learning ---- */

/* Where a pixel is: from -1 to 1 each way. */
static void locate(int i, int width, int height, float *to) {
    to[0] = (float)(2 * (i % width) + 1) / (float)width - 1;
    to[1] = (float)(2 * (i / width) + 1) / (float)height - 1;
}

/* All pixels, in a drawn order: coordinates and colours from 0 to 1. */
static void place_picture(network *net, const picture *p, uint64_t *random) {
    const int pixels = p->width * p->height;
    int *order = allocate((size_t)pixels, sizeof *order);
    float *x = allocate((size_t)pixels, COORDINATES * sizeof *x),
          *colours = allocate((size_t)pixels, CHANNELS * sizeof *colours);
    for (int i = 0; i < pixels; i++) {
        const int other = (int)(uniform(random) * (i + 1));
        order[i] = order[other], order[other] = i;
    }
    for (int i = 0; i < pixels; i++) {
        locate(order[i], p->width, p->height, &x[COORDINATES * i]);
        for (int j = 0; j < CHANNELS; j++)
            colours[CHANNELS * i + j] = (float)p->rgb[CHANNELS * order[i] + j] / 255;
    }
    store_as_f16(x, net->x, (int64_t)pixels * COORDINATES);
    store_as_f16(colours, net->target, (int64_t)pixels * CHANNELS);
    free(order), free(x), free(colours);
}

static void learn(network *net, int pixels, int epochs) {
    const int batch = (int)net->desc.rows, batches = pixels / batch, rest = pixels - batches * batch;
    for (int epoch = 0; epoch < epochs; epoch++) {
        const float zero = 0;
        float loss;
        check(gemmepi_upload(context, net->loss, &zero, sizeof zero, NULL));
        for (int i = 0; i < batches; i++) {
            const double done = (epoch + (double)i / batches) / epochs;
            const int first =
                i * batch + (epoch % 2 ? rest : 0); /* each pixel in every second epoch, at least */
            net->rate = 1e-2 * (1 - done) * (done < 0.02 ? done / 0.02 : 1);
            net->args.x = net->x + (size_t)first * COORDINATES;
            check(gemmepi_run_network(net->forward, &net->args, NULL));
            compare(net, first);
            check(gemmepi_run_network_backward(net->backward, &net->args, NULL));
            adam(net);
        }
        if ((epoch + 1) % (epochs < 10 ? 1 : epochs / 10))
            continue;
        check(gemmepi_download(context, &loss, net->loss, sizeof loss, NULL));
        const double mean = (double)loss / (CHANNELS * batches * batch);
        if (!(mean < 1)) /* a NaN too */
            fail("learning", "the loss grows without bound");
        printf("%4d epochs: %.2f dB\n", epoch + 1, -10 * log10(mean));
        fflush(stdout);
    }
}

/* ---- what is stored ---- */

/* The file has the seed, which makes the first layer, and the other layers' weights. Returns its size. */
static long write_texture(const network *net, uint64_t seed, const char *path) {
    const size_t count = (size_t)(net->count - net->features);
    uint16_t *weights = allocate(count, sizeof *weights);
    FILE *file = fopen(path, "wb");
    check(gemmepi_download(context, weights, net->weights + net->features, count * sizeof *weights, NULL));
    if (!file || fwrite(&seed, sizeof seed, 1, file) != 1 ||
        fwrite(weights, sizeof *weights, count, file) != count)
        fail(path, "cannot be written");
    const long size = ftell(file);
    if (fclose(file))
        fail(path, "cannot be written");
    free(weights);
    return size;
}

static void read_texture(const network *net, const char *path) {
    const size_t count = (size_t)(net->count - net->features);
    uint16_t *weights = allocate(count, sizeof *weights);
    float *drawn = allocate((size_t)net->count, sizeof *drawn);
    uint64_t seed = 0;
    FILE *file = fopen(path, "rb");
    if (!file || fread(&seed, sizeof seed, 1, file) != 1 ||
        fread(weights, sizeof *weights, count, file) != count)
        fail(path, "cannot be read");
    fclose(file);
    draw_weights(net, seed, drawn);
    store_as_f16(drawn, net->weights, net->count);
    check(gemmepi_upload(context, net->weights + net->features, weights, count * sizeof *weights, NULL));
    free(weights), free(drawn);
}

/* What the network makes of all pixels. */
static picture draw(network *net, int width, int height) {
    const int batch = (int)net->desc.rows, pixels = width * height;
    float *x = allocate((size_t)batch, COORDINATES * sizeof *x),
          *y = allocate((size_t)batch, CHANNELS * sizeof *y);
    float *colours = reserve((size_t)batch * CHANNELS, sizeof *colours);
    const int64_t count = (int64_t)batch * CHANNELS;
    const gemmepi_tensor from = {.data = net->y, .dtype = GEMMEPI_F16, .rank = 1, .shape = &count};
    const gemmepi_tensor to = {.data = colours, .rank = 1, .shape = &count};
    const gemmepi_elementwise_desc cast = {.operation = GEMMEPI_OP_CAST, .a = &from, .y = &to};
    picture p = new_picture(width, height);
    net->args.x = net->x;
    for (int i = 0; i < pixels; i += batch) {
        const int first = i < pixels - batch ? i : pixels - batch;
        for (int j = 0; j < batch; j++)
            locate(first + j, width, height, &x[COORDINATES * j]);
        store_as_f16(x, net->x, (int64_t)batch * COORDINATES);
        check(gemmepi_run_network(net->forward, &net->args, NULL));
        check(gemmepi_elementwise(context, &cast, NULL, NULL));
        check(gemmepi_download(context, y, colours, (size_t)count * sizeof *y, NULL));
        for (int j = 0; j < CHANNELS * batch; j++)
            p.rgb[CHANNELS * first + j] = (unsigned char)(255 * y[j] + 0.5f);
    }
    free(x), free(y);
    return p;
}

/* ---- the program ---- */

typedef struct options {
    int device, is_small, epochs, seed;
    const char *png, *bin, *picture;
} options;

static const char usage[] =
    "texture [--small] [--host] [--epochs N] [--seed N] [--png PATH] [--bin PATH] [PICTURE.ppm]\n"
    "  learns a picture (data/cat.ppm), stores the network as texture.bin, and draws the picture from it next to the original: texture.png\n"
    "  --small     64 x 64 pixels and a smaller network: always so on the host\n"
    "  --host      not on the GPU\n"
    "  --epochs N  how often it sees each pixel (200)\n";

static int number(const char *text) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 100000)
        fail(text, "a number from 1 to 100000 is needed here");
    return (int)value;
}

static options read_options(int argc, char **argv) {
    options o = {0, 0, 200, 1, "texture.png", "texture.bin", "data/cat.ppm"};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--small"))
            o.is_small = 1;
        else if (!strcmp(argv[i], "--host"))
            o.device = GEMMEPI_DEVICE_HOST;
        else if (!strcmp(argv[i], "--epochs") && i + 1 < argc)
            o.epochs = number(argv[++i]);
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            o.seed = number(argv[++i]);
        else if (!strcmp(argv[i], "--png") && i + 1 < argc)
            o.png = argv[++i];
        else if (!strcmp(argv[i], "--bin") && i + 1 < argc)
            o.bin = argv[++i];
        else if (!strcmp(argv[i], "--help"))
            fputs(usage, stdout), exit(0);
        else if (argv[i][0] != '-')
            o.picture = argv[i];
        else
            fail(argv[i],
                 "known are --small, --host, --epochs N, --seed N, --png PATH, --bin PATH and --help");
    }
    return o;
}

/* Returns whether it is the host. */
static int open_context(int device) {
    const gemmepi_config config = {.device = device};
    gemmepi_context_details details;
    check(gemmepi_create(&config, &context));
    check(gemmepi_context_info(context, &details));
    if (details.fallback_reason[0])
        printf("no GPU is used: %s\n", details.fallback_reason);
    printf("runs on: %s\n", details.name);
    return details.is_host;
}

static void close_network(network *net) {
    gemmepi_plan_destroy(net->forward), gemmepi_plan_destroy(net->backward);
    gemmepi_plan_destroy(net->compare), gemmepi_plan_destroy(net->adam);
    for (int i = 0; i < block_count; i++)
        check(gemmepi_free(context, blocks[i]));
}

/* The original and what was drawn from the file, next to each other. */
static void show(const picture *p, const picture *drawn, const char *path) {
    enum { GAP = 2 };
    picture both = new_picture(2 * p->width + GAP, p->height);
    memset(both.rgb, 255, (size_t)both.width * (size_t)both.height * 3);
    paste(&both, p, 0, 1);
    paste(&both, drawn, p->width + GAP, 1);
    write_png(path, &both);
    free(both.rgb);
}

int main(int argc, char **argv) {
    const options o = read_options(argc, argv);
    uint64_t random = (uint64_t)o.seed;
    picture p = read_picture(o.picture);
    const int is_small = open_context(o.device) || o.is_small;
    if (is_small) {
        const int longer = p.width > p.height ? p.width : p.height;
        const picture shrunk = shrink(&p, (longer + 63) / 64);
        free(p.rgb);
        p = shrunk;
    }
    const int pixels = p.width * p.height, most = is_small ? 512 : 4096,
              batch = pixels < most ? pixels : most;
    static network net;
    make_network(&net, is_small ? 32 : 64, batch, pixels);
    float *drawn_weights = allocate((size_t)net.count, sizeof *drawn_weights);
    draw_weights(&net, (uint64_t)o.seed, drawn_weights);
    check(gemmepi_upload(context, net.exact, drawn_weights, (size_t)net.count * sizeof *drawn_weights, NULL));
    store_as_f16(drawn_weights, net.weights, net.count);
    place_picture(&net, &p, &random);
    plan_comparison(&net), plan_adam(&net);
    const double began = seconds();
    learn(&net, pixels, o.epochs);
    printf("%d epochs in %.1f s\n", o.epochs, seconds() - began);
    const long size = write_texture(&net, (uint64_t)o.seed, o.bin);
    read_texture(&net, o.bin);
    picture drawn = draw(&net, p.width, p.height);
    show(&p, &drawn, o.png);
    printf("%s has %ld bytes; %d x %d pixels have %d: %.1f to 1, at %.2f dB; side by side: %s\n", o.bin, size,
           p.width, p.height, 3 * pixels, 3.0 * pixels / (double)size, psnr(&p, &drawn), o.png);
    free(drawn_weights), free(drawn.rgb), free(p.rgb);
    close_network(&net);
    gemmepi_destroy(context);
    return 0;
}
