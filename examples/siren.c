/* A network of sines learns a picture: from where a pixel is to its colour. Its activation is no activation of the library, but
   a formula, and a step of its training is four calls:

       gemmepi_network             d = sin(30 * v) in each layer but the last, which is linear
       gemmepi_elementwise         e = y - target; d = 2 * e; and the loss
       gemmepi_network_backward    the gradients of all weights, by what is derived of the sine
       gemmepi_elementwise         Adam, in place

   It first holds the gradient against slopes of the loss. Then it learns, and draws the picture, what it has learnt, and four times as
   many pixels than it was shown, next to each other in a PNG. On the GPU if there is one, else on the host, with --small.
   (Sitzmann et al., Implicit Neural Representations with Periodic Activation Functions, 2020.)

       siren [--small] [--host] [--epochs N] [--seed N] [--png PATH] [PICTURE.ppm] */
#define _POSIX_C_SOURCE 200112L /* clock_gettime, isatty */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <time.h>
#ifdef _WIN32
#include <io.h>
#define isatty _isatty
#else
#include <unistd.h>
#endif

#define PROGRAM "siren"
#include "picture.h"

static const char sine[] = "d = sin(30 * v)";
static const char compare[] = "e = y - target; d = 2 * e; loss = all_sum(e * e)";
static const char adam[] = "mean_now = 0.9 * mean + 0.1 * g;"
                           "square_now = 0.999 * square + 0.001 * g * g;"
                           "w_now = w - rate * mean_now / (sqrt(square_now) + 1e-8)";

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

/* ---- formulas over matrices ---- */

enum { MOST_OPERANDS = 7 };

/* A formula, planned: it holds what its desc and args point to, and must stay where it is. */
typedef struct pass {
    gemmepi_elementwise_desc desc;
    gemmepi_elementwise_args args;
    gemmepi_operand operands[MOST_OPERANDS];
    gemmepi_tensor matrix, number; /* [rows, columns], and one for all of them */
    int64_t shapes[2][2];
    void *pointers[MOST_OPERANDS];
    gemmepi_plan *plan;
} pass;

static void start(pass *p, int rows, int columns, const char *formula, const char *result) {
    p->shapes[0][0] = rows, p->shapes[0][1] = columns;
    p->shapes[1][0] = p->shapes[1][1] = 1;
    p->matrix.rank = p->number.rank = 2;
    p->matrix.shape = p->shapes[0], p->number.shape = p->shapes[1];
    p->desc.formula = formula, p->desc.formula_result = result;
    p->desc.operands = p->operands, p->args.operands = p->pointers;
    p->desc.y = &p->matrix;
}

static gemmepi_operand *operand(pass *p, const char *name, gemmepi_operand_kind kind, void *pointer) {
    gemmepi_operand *added = &p->operands[p->desc.operand_count];
    added->name = name;
    added->kind = kind;
    added->tensor = kind == GEMMEPI_FULL ? &p->matrix : kind == GEMMEPI_SCALAR ? &p->number : NULL;
    p->pointers[p->desc.operand_count++] = pointer;
    return added;
}

/* ---- the network ---- */

enum { MOST_LAYERS = 4, MOST_BLOCKS = 16 };

/* Weights of all layers are one block, so that Adam is one pass: of each layer [in, out], then its bias [out]. The gradients lie
   likewise, and Adam's means of them and of their squares. Pointers are the device's: to point into, not to read from here. */
typedef struct network {
    int count, batch, pixels, sizes[MOST_LAYERS + 1];
    size_t places[MOST_LAYERS + 1]; /* of each layer in the block, and the end */
    float *weights, *gradients, *mean, *square;
    float *coordinates, *targets; /* [pixels, 2] and [pixels, 3] of the picture, shuffled */
    float *place, *y, *dy;        /* [batch, 2] to draw with, and [batch, 3] */
    float *loss;                  /* one number, to which each batch adds */
    gemmepi_network_layer layers[MOST_LAYERS];
    gemmepi_network_desc desc;
    gemmepi_network_args args;
    const void *w[MOST_LAYERS], *bias[MOST_LAYERS];
    void *dw[MOST_LAYERS], *dbias[MOST_LAYERS];
    gemmepi_plan *forward, *backward;
    pass compare, update;
    double rate;
    void *blocks[MOST_BLOCKS];
    int block_count;
} network;

static float *place(network *net, const float *values, size_t count) {
    void *memory;
    check(gemmepi_alloc_from(context, values, count * sizeof *values, &memory));
    net->blocks[net->block_count++] = memory;
    return memory;
}

static float *zeros(network *net, size_t count) {
    float *values = allocate(count, sizeof *values), *there = place(net, values, count);
    free(values);
    return there;
}

/* As SIREN's authors have them: sines of sines are as wide as sines, however many layers there are. */
static void draw_weights(const network *net, int i, float *values, uint64_t *random) {
    const int in = net->sizes[i], out = net->sizes[i + 1];
    const double most = i == 0 ? 1.0 / in : sqrt(6.0 / in) / 30;
    for (int j = 0; j < (in + (i == 0)) * out; j++)
        values[j] = (float)(most * (2 * uniform(random) - 1));
}

static void make_weights(network *net, uint64_t *random) {
    for (int i = 0; i < net->count; i++) {
        const size_t size = (size_t)(net->sizes[i] + 1) * (size_t)net->sizes[i + 1];
        net->places[i + 1] = net->places[i] + (size + 3) / 4 * 4; /* at multiples of 16 bytes */
    }
    const size_t all = net->places[net->count];
    float *values = allocate(all, sizeof *values);
    for (int i = 0; i < net->count; i++)
        draw_weights(net, i, values + net->places[i], random);
    net->weights = place(net, values, all);
    free(values);
    net->gradients = zeros(net, all), net->mean = zeros(net, all), net->square = zeros(net, all);
    net->place = zeros(net, (size_t)net->batch * 2);
    net->y = zeros(net, (size_t)net->batch * 3), net->dy = zeros(net, (size_t)net->batch * 3);
    net->loss = zeros(net, 1);
}

static void describe(network *net) {
    for (int i = 0; i < net->count; i++) {
        const size_t bias = net->places[i] + (size_t)net->sizes[i] * (size_t)net->sizes[i + 1];
        net->layers[i].width = net->sizes[i + 1];
        net->layers[i].formula = i + 1 < net->count ? sine : NULL;
        net->w[i] = net->weights + net->places[i], net->bias[i] = net->weights + bias;
        net->dw[i] = net->gradients + net->places[i], net->dbias[i] = net->gradients + bias;
    }
    net->desc.rows = net->batch, net->desc.input = net->sizes[0];
    net->desc.layers = net->layers, net->desc.layer_count = net->count;
    net->desc.flags = GEMMEPI_NETWORK_BIAS | GEMMEPI_NETWORK_DW | GEMMEPI_NETWORK_SAVED;
    net->args.w = net->w, net->args.bias = net->bias, net->args.dw = net->dw, net->args.dbias = net->dbias;
    net->args.y = net->y, net->args.dy = net->dy;
}

static void make_passes(network *net) {
    pass *p = &net->compare;
    start(p, net->batch, 3, compare, "d");
    operand(p, "y", GEMMEPI_FULL, net->y);
    operand(p, "target", GEMMEPI_FULL, net->targets);
    gemmepi_operand *loss = operand(p, "loss", GEMMEPI_SCALAR, net->loss);
    loss->output = loss->accumulate = 1;
    p->args.y = net->dy;
    p = &net->update;
    start(p, 1, (int)net->places[net->count], adam, "w_now");
    operand(p, "w", GEMMEPI_FULL, net->weights);
    operand(p, "g", GEMMEPI_FULL, net->gradients);
    operand(p, "mean", GEMMEPI_FULL, net->mean), operand(p, "square", GEMMEPI_FULL, net->square);
    operand(p, "mean_now", GEMMEPI_FULL, net->mean)->output = 1;
    operand(p, "square_now", GEMMEPI_FULL, net->square)->output = 1;
    operand(p, "rate", GEMMEPI_NUMBER, gemmepi_number(&net->rate));
    p->args.y = net->weights;
}

static void show_planned(void *user, size_t done, size_t count) {
    (void)user;
    fprintf(stderr, "\rplanned %d of %d%s", (int)done, (int)count, done < count ? "" : "\n");
}

/* Compiles all kernels side by side, then plans. */
static void make_plans(network *net) {
    const gemmepi_any_desc problems[] = {{.network = &net->desc},
                                         {.network_backward = &net->desc},
                                         {.elementwise = &net->compare.desc},
                                         {.elementwise = &net->update.desc}};
    gemmepi_plan_details details;
    check(gemmepi_precompile(context, problems, 4, 0, isatty(2) ? show_planned : NULL, NULL));
    check(gemmepi_plan_network(context, &net->desc, &net->forward));
    check(gemmepi_plan_network_backward(context, &net->desc, &net->backward));
    check(gemmepi_plan_elementwise(context, &net->compare.desc, &net->compare.plan));
    check(gemmepi_plan_elementwise(context, &net->update.desc, &net->update.plan));
    gemmepi_plan *const all[] = {net->forward, net->backward, net->compare.plan, net->update.plan};
    for (int i = 0; i < 4; i++)
        check(gemmepi_plan_prepare(all[i], NULL));
    check(gemmepi_plan_info(net->forward, &details));
    net->args.saved_size = details.saved_size;
    if (details.saved_size)
        check(gemmepi_alloc(context, details.saved_size, &net->args.saved));
}

static void close_network(network *net) {
    gemmepi_plan_destroy(net->forward), gemmepi_plan_destroy(net->backward);
    gemmepi_plan_destroy(net->compare.plan), gemmepi_plan_destroy(net->update.plan);
    check(gemmepi_free(context, net->args.saved));
    for (int i = 0; i < net->block_count; i++)
        check(gemmepi_free(context, net->blocks[i]));
}

/* ---- a step ---- */

/* A batch of the picture's pixels from `first` on through the network, and what its colours are off: the loss is added up. */
static void forward(network *net, int first) {
    net->args.x = net->coordinates + (size_t)first * 2;
    net->compare.pointers[1] = net->targets + (size_t)first * 3;
    check(gemmepi_run_network(net->forward, &net->args, NULL));
    check(gemmepi_run_elementwise(net->compare.plan, &net->compare.args, NULL));
}

static void backward(network *net) {
    check(gemmepi_run_network_backward(net->backward, &net->args, NULL));
}

static void clear_loss(network *net) {
    const float zero = 0;
    check(gemmepi_upload(context, net->loss, &zero, sizeof zero, NULL));
}

static double read_loss(const network *net) {
    float loss;
    check(gemmepi_download(context, &loss, net->loss, sizeof loss, NULL));
    return (double)loss;
}

/* ---- the gradient against slopes ---- */

/* The loss of the first batch, with a weight moved. */
static double loss_at(network *net, float *weight, float value) {
    check(gemmepi_upload(context, weight, &value, sizeof value, NULL));
    clear_loss(net);
    forward(net, 0);
    return read_loss(net);
}

/* Some weights and biases of a layer go up, down and back. */
static void check_layer(network *net, int i) {
    const size_t count = (size_t)(net->sizes[i] + 1) * (size_t)net->sizes[i + 1];
    float *w = allocate(count, sizeof *w), *gradient = allocate(count, sizeof *gradient);
    float *there = net->weights + net->places[i];
    double worst = 0, largest = 0;
    forward(net, 0);
    backward(net);
    check(gemmepi_download(context, gradient, net->dw[i], count * sizeof *gradient, NULL));
    check(gemmepi_download(context, w, there, count * sizeof *w, NULL));
    for (size_t j = count - 1; j < count; j -= (count + 11) / 12) { /* below 0 it is huge */
        const float up = w[j] + 1e-3f, down = w[j] - 1e-3f;
        const double rise = loss_at(net, there + j, up) - loss_at(net, there + j, down);
        const double slope = rise / ((double)up - (double)down);
        loss_at(net, there + j, w[j]);
        worst = fmax(worst, fabs((double)gradient[j] - slope));
        largest = fmax(largest, fabs(slope));
    }
    printf("layer of %3d to %3d: its gradient is the slope of the loss within %.0e of the largest\n",
           net->sizes[i], net->sizes[i + 1], worst / largest);
    if (!(worst < 0.02 * largest)) /* a NaN too */
        fail("gradient", "it is not the slope of the loss");
    free(w);
    free(gradient);
}

/* ---- learning ---- */

/* Where pixel i of a picture is, from -1 to 1 each way. */
static void locate(int i, int width, int height, float to[2]) {
    to[0] = (float)(2 * (i % width + 0.5) / width - 1);
    to[1] = (float)(2 * (i / width + 0.5) / height - 1);
}

/* The picture's pixels in random order, so that each batch is of the whole picture. */
static void place_picture(network *net, const picture *p, uint64_t *random) {
    const size_t count = (size_t)net->pixels;
    float *x = allocate(count, 2 * sizeof *x), *y = allocate(count, 3 * sizeof *y);
    int *order = allocate(count, sizeof *order);
    for (int i = 0; i < net->pixels; i++) {
        const int other = (int)(uniform(random) * (i + 1));
        order[i] = order[other], order[other] = i;
    }
    for (int i = 0; i < net->pixels; i++) {
        locate(order[i], p->width, p->height, &x[2 * i]);
        for (int j = 0; j < 3; j++)
            y[3 * i + j] = (float)p->rgb[3 * order[i] + j] / 127.5f - 1;
    }
    net->coordinates = place(net, x, count * 2);
    net->targets = place(net, y, count * 3);
    free(x), free(y), free(order);
}

/* A bar on a terminal, ten lines elsewhere. */
static void show_progress(double decibels, int done, int epochs) {
    const char *bar = "##############################";
    const int filled = done * 30 / epochs;
    if (isatty(1))
        printf("\r[%.*s%*s] ", filled, bar, 30 - filled, "");
    else if (done < epochs && done % ((epochs + 9) / 10))
        return;
    printf("epoch %3d of %d, %.2f dB", done, epochs, decibels);
    if (!isatty(1) || done == epochs)
        putchar('\n');
    fflush(stdout);
}

/* Each epoch uses all pixels once; of the last batch some again, where they are no multiple of it. */
static void learn(network *net, int epochs, double rate) {
    const int batches = (net->pixels + net->batch - 1) / net->batch, steps = epochs * batches;
    for (int step = 1; step <= steps; step++) {
        const int first = (step - 1) % batches * net->batch, most = net->pixels - net->batch;
        if (first == 0)
            clear_loss(net);
        /* Half a cosine down to 0, times what corrects Adam's means, which begin at 0. */
        net->rate = rate * 0.5 * (1 + cos(3.14159265 * (step - 1) / steps));
        net->rate *= sqrt(1 - pow(0.999, step)) / (1 - pow(0.9, step));
        forward(net, first < most ? first : most);
        backward(net);
        check(gemmepi_run_elementwise(net->update.plan, &net->update.args, NULL));
        if (step % batches)
            continue;
        const double mean = read_loss(net) / (3.0 * batches * net->batch);
        if (!(mean < 10)) /* a NaN too */
            fail("learning", "the loss grows without bound");
        show_progress(10 * log10(4 / mean), step / batches,
                      epochs); /* values go from -1 to 1: the peak is 2 */
    }
}

/* What the network makes of a picture of any size. */
static picture drawn(network *net, int width, int height) {
    const int batch = net->batch, pixels = width * height;
    float *x = allocate((size_t)batch, 2 * sizeof *x), *y = allocate((size_t)batch, 3 * sizeof *y);
    picture p = new_picture(width, height);
    net->args.x = net->place;
    for (int i = 0; i < pixels; i += batch) {
        const int first = i < pixels - batch ? i : pixels - batch;
        for (int j = 0; j < batch; j++)
            locate(first + j, width, height, &x[2 * j]);
        check(gemmepi_upload(context, net->place, x, (size_t)batch * 2 * sizeof *x, NULL));
        check(gemmepi_run_network(net->forward, &net->args, NULL));
        check(gemmepi_download(context, y, net->y, (size_t)batch * 3 * sizeof *y, NULL));
        for (int j = 0; j < 3 * batch; j++)
            p.rgb[3 * first + j] = (unsigned char)(127.5f * (fminf(fmaxf(y[j], -1), 1) + 1) + 0.5f);
    }
    free(x), free(y);
    return p;
}

/* ---- the program ---- */

typedef struct options {
    int device, is_small, epochs, seed;
    const char *png, *picture;
} options;

static const char usage[] =
    "siren [--small] [--host] [--epochs N] [--seed N] [--png PATH] [PICTURE.ppm]\n"
    "  learns a picture (data/cat.ppm), and writes it, what it learnt and four times the pixels to siren.png\n"
    "  --small     64 x 64 pixels and fewer sines: always so on the host\n"
    "  --host      not on the GPU\n"
    "  --epochs N  how often it sees each pixel (100)\n";

static int number(const char *text) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 100000)
        fail(text, "a number from 1 to 100000 is needed here");
    return (int)value;
}

static options read_options(int argc, char **argv) {
    options o = {0, 0, 100, 1, "siren.png", "data/cat.ppm"};
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
        else if (!strcmp(argv[i], "--help"))
            fputs(usage, stdout), exit(0);
        else if (argv[i][0] != '-')
            o.picture = argv[i];
        else
            fail(argv[i], "known are --small, --host, --epochs N, --seed N, --png PATH and --help");
    }
    return o;
}

/* The device, if it runs formulas, else the host. Returns whether it is that. */
static int open_context(int device) {
    const gemmepi_config config = {.device = device}, host = {.device = GEMMEPI_DEVICE_HOST};
    const gemmepi_matmul_desc probe = {.m = 64, .n = 64, .k = 64, .formula = "d = sin(30 * v)"};
    gemmepi_context_details details;
    gemmepi_plan *plan;
    check(gemmepi_create(&config, &context));
    if (gemmepi_plan_matmul(context, &probe, &plan) != GEMMEPI_OK) {
        printf("%s\nTherefore this runs on the host.\n", gemmepi_last_error());
        gemmepi_destroy(context);
        check(gemmepi_create(&host, &context));
    }
    gemmepi_plan_destroy(plan);
    check(gemmepi_context_info(context, &details));
    if (details.fallback_reason[0])
        printf("no GPU is used: %s\n", details.fallback_reason);
    printf("runs on: %s\n", details.name);
    return details.is_host;
}

/* What the network's backward makes of the sine. */
static void show_gradient(void) {
    const gemmepi_derive_desc desc = {.formula = sine, .value = "v", .wrt = "v"};
    char gradient[256];
    const size_t length = gemmepi_derive(&desc, gradient, sizeof gradient);
    if (length == 0 || length >= sizeof gradient)
        fail(sine, length ? "its gradient is longer than expected" : gemmepi_last_error());
    printf("formula: %s\ngradient: %s\n", sine, gradient);
}

static void make_network(network *net, const picture *p, int is_small, uint64_t *random) {
    static const int sizes[2][MOST_LAYERS + 1] = {{2, 256, 256, 256, 3}, {2, 64, 64, 3}};
    const int batch = is_small ? 512 : 4096;
    net->count = is_small ? 3 : 4;
    net->pixels = p->width * p->height;
    net->batch = net->pixels < batch ? net->pixels : batch;
    memcpy(net->sizes, sizes[is_small], sizeof net->sizes);
    printf("%d x %d pixels, %d sines in each of %d layers\n", p->width, p->height, net->sizes[1],
           net->count - 1);
    show_gradient();
    place_picture(net, p, random);
    make_weights(net, random);
    describe(net);
    make_passes(net);
    make_plans(net);
}

/* The picture, what was learnt of it, and that with twice the pixels each way. */
static void show(network *net, const picture *p, const char *path) {
    enum { GAP = 2 };
    const int width = 2 * p->width;
    picture learnt = drawn(net, p->width, p->height), fine = drawn(net, width, 2 * p->height);
    picture all = new_picture(3 * width + 2 * GAP, fine.height);
    memset(all.rgb, 255, (size_t)all.width * (size_t)all.height * 3);
    paste(&all, p, 0, 2);
    paste(&all, &learnt, width + GAP, 2);
    paste(&all, &fine, 2 * (width + GAP), 1);
    write_png(path, &all);
    printf("learnt to %.2f dB; drawn at %d x %d: %s\n", psnr(p, &learnt), fine.width, fine.height, path);
    free(learnt.rgb), free(fine.rgb), free(all.rgb);
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
    network *net = allocate(1, sizeof *net);
    make_network(net, &p, is_small, &random);
    for (int i = 0; i < net->count; i++)
        check_layer(net, i);
    const double began = seconds();
    learn(net, o.epochs, is_small ? 2e-3 : 1e-3);
    printf("%d epochs in %.1f s\n", o.epochs, seconds() - began);
    show(net, &p, o.png);
    close_network(net);
    free(net);
    free(p.rgb);
    gemmepi_destroy(context);
    return 0;
}
