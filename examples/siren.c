/* A network of sines learns a picture: from where a pixel is to its colour. Its activation is no activation of the library, but
   a formula, d = sin(30 * z), and every step of its training is products with formulas:

       forward      z = v + bias; d = sin(30 * z)                     v: inputs times weights
       at the end   e = v + bias - target; d = 2 * e; and the loss
       backward     what gemmepi_derive makes of the sine             dy: gradients times weights
       update       Adam, whole, where the gradient of weights is made

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

#define SINE "d = sin(30 * z)"
static const char sine[] = "z = v + bias; " SINE;
static const char compare[] = "e = v + bias - target; d = 2 * e; loss = all_sum(e * e)";
static const char draw[] = "d = clamp(v + bias, -1, 1)";
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

/* ---- products with formulas ---- */

enum { MOST_OPERANDS = 6 };

/* One product, planned: it holds what its desc and args point to, and must stay where it is. */
typedef struct product {
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_operand operands[MOST_OPERANDS];
    void *pointers[MOST_OPERANDS];
    gemmepi_plan *plan;
} product;

/* D [m, n] = formula(A [m, k] B [k, n]) */
static void start(product *p, int m, int n, int k, const char *formula) {
    p->desc.m = m, p->desc.n = n, p->desc.k = k;
    p->desc.formula = formula;
    p->desc.operands = p->operands;
    p->args.operands = p->pointers;
}

static gemmepi_operand *operand(product *p, const char *name, gemmepi_operand_kind kind, void *pointer) {
    gemmepi_operand *added = &p->operands[p->desc.operand_count];
    added->name = name;
    added->kind = kind;
    p->pointers[p->desc.operand_count++] = pointer;
    return added;
}

static void result(product *p, const char *name, gemmepi_operand_kind kind, void *pointer) {
    operand(p, name, kind, pointer)->output = 1;
}

static void run(const product *p) {
    check(gemmepi_run_matmul(p->plan, &p->args, NULL));
}

/* ---- the network ---- */

enum { MOST_LAYERS = 4, MOST_BLOCKS = 32 };

/* A layer's weights are [in + 1, out]: the last row is the bias. Its inputs have a column of ones behind them: so the product that
   makes the gradient of weights makes that of the bias, too. */
typedef struct layer {
    int in, out;
    float *w, *mean, *square; /* Adam's means of gradients and their squares, stored as w is */
    float *x;                 /* [batch, ld_of(in)]; the first layer's are coordinates */
    float *z, *dz;            /* [batch, out]: before the sine, and the gradient there */
    product forward, backward, update;
} layer;

/* Pointers are the device's: to point into, not to read from here. */
typedef struct network {
    int count, batch, pixels;
    layer layers[MOST_LAYERS];
    product drawing;              /* the last layer's, when nothing is learnt */
    float *coordinates, *targets; /* [pixels, 4] and [pixels, 3] of the picture, shuffled */
    float *place, *colour;        /* [batch, 4] and [batch, 3], to draw with */
    float *loss;                  /* one number, to which each batch adds */
    double rate;
    void *blocks[MOST_BLOCKS];
    int block_count;
} network;

/* Up to a multiple of 16 bytes, which is faster on a GPU. */
static int ld_of(int in) {
    return (in + 1 + 3) / 4 * 4;
}

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

/* Room for a layer's inputs, with ones behind them. */
static float *inputs(network *net, int in) {
    float *values = allocate((size_t)net->batch * (size_t)ld_of(in), sizeof *values);
    for (int i = 0; i < net->batch; i++)
        values[i * ld_of(in) + in] = 1;
    float *there = place(net, values, (size_t)net->batch * (size_t)ld_of(in));
    free(values);
    return there;
}

/* As SIREN's authors have them: sines of sines are as wide as sines, however many layers there are. */
static float *weights(network *net, int in, int out, int is_first, uint64_t *random) {
    const double most = is_first ? 1.0 / in : sqrt(6.0 / in) / 30;
    float *values = allocate((size_t)(in + 1) * (size_t)out, sizeof *values);
    for (int i = 0; i < (in + is_first) * out; i++)
        values[i] = (float)(most * (2 * uniform(random) - 1));
    float *there = place(net, values, (size_t)(in + 1) * (size_t)out);
    free(values);
    return there;
}

static void make_memory(network *net, const int *sizes, uint64_t *random) {
    for (int i = 0; i < net->count; i++) {
        layer *l = &net->layers[i];
        l->in = sizes[i], l->out = sizes[i + 1];
        const size_t count = (size_t)(l->in + 1) * (size_t)l->out;
        l->w = weights(net, l->in, l->out, i == 0, random);
        l->mean = zeros(net, count), l->square = zeros(net, count);
        l->x = i ? inputs(net, l->in) : net->coordinates;
        l->z = zeros(net, (size_t)net->batch * (size_t)l->out);
        l->dz = zeros(net, (size_t)net->batch * (size_t)l->out);
    }
    net->place = zeros(net, (size_t)net->batch * 4);
    net->colour = zeros(net, (size_t)net->batch * 3);
    net->loss = zeros(net, 1);
}

/* inputs times weights, and the formula */
static void make_forward(const network *net, const layer *l, product *p, const char *formula) {
    start(p, net->batch, l->out, l->in, formula);
    p->desc.a.ld = ld_of(l->in);
    p->args.a = l->x, p->args.b = l->w;
    operand(p, "bias", GEMMEPI_PER_COLUMN, l->w + (size_t)l->in * (size_t)l->out);
}

/* dy = the next layer's dz times its weights, transposed; from there through this layer's sine. */
static void make_backward(const network *net, layer *l, const layer *next, const char *gradient) {
    product *p = &l->backward;
    start(p, net->batch, next->in, next->out, gradient);
    p->desc.formula_value = "dy", p->desc.formula_result = "d_z";
    p->desc.b.transposed = 1;
    p->args.a = next->dz, p->args.b = next->w, p->args.d = l->dz;
    operand(p, "z", GEMMEPI_FULL, l->z);
}

/* g = inputs, transposed, times dz; no gradient is stored: Adam uses it as it is computed, and writes what it reads. */
static void make_update(network *net, layer *l) {
    product *p = &l->update;
    start(p, l->in + 1, l->out, net->batch, adam);
    p->desc.formula_value = "g", p->desc.formula_result = "w_now";
    p->desc.a.transposed = 1, p->desc.a.ld = ld_of(l->in);
    p->args.a = l->x, p->args.b = l->dz, p->args.d = l->w;
    operand(p, "w", GEMMEPI_FULL, l->w);
    operand(p, "mean", GEMMEPI_FULL, l->mean);
    operand(p, "square", GEMMEPI_FULL, l->square);
    operand(p, "rate", GEMMEPI_NUMBER, gemmepi_number(&net->rate));
    result(p, "mean_now", GEMMEPI_FULL, l->mean);
    result(p, "square_now", GEMMEPI_FULL, l->square);
}

/* The gradient of the sine by z, which is what is saved. */
static void derive(char *text, size_t size) {
    const gemmepi_derive_desc desc = {.formula = SINE, .value = "z", .wrt = "z"};
    const size_t length = gemmepi_derive(&desc, text, size);
    if (length == 0 || length >= size)
        fail(SINE, length ? "its gradient is longer than expected" : gemmepi_last_error());
}

static void make_products(network *net, const char *gradient) {
    layer *last = &net->layers[net->count - 1];
    for (layer *l = net->layers; l < last; l++) {
        make_forward(net, l, &l->forward, sine);
        result(&l->forward, "z", GEMMEPI_FULL, l->z);
        l->forward.desc.d.ld = ld_of(l->out);
        l->forward.args.d = l[1].x;
        make_backward(net, l, l + 1, gradient);
        make_update(net, l);
    }
    make_forward(net, last, &last->forward, compare);
    operand(&last->forward, "target", GEMMEPI_FULL, net->targets);
    result(&last->forward, "loss", GEMMEPI_SCALAR, net->loss);
    last->forward.operands[2].accumulate = 1;
    last->forward.args.d = last->dz;
    make_update(net, last);
    make_forward(net, last, &net->drawing, draw);
    net->drawing.args.d = net->colour;
}

static void show_planned(void *user, size_t done, size_t count) {
    (void)user;
    fprintf(stderr, "\rplanned %d of %d%s", (int)done, (int)count, done < count ? "" : "\n");
}

/* Compiles all kernels side by side, then plans. */
static void make_plans(network *net) {
    product *all[3 * MOST_LAYERS + 1];
    gemmepi_any_desc problems[3 * MOST_LAYERS + 1];
    int count = 0;
    memset(problems, 0, sizeof problems);
    for (int i = 0; i < net->count; i++) {
        layer *l = &net->layers[i];
        all[count++] = &l->forward, all[count++] = &l->update;
        if (i + 1 < net->count)
            all[count++] = &l->backward;
    }
    all[count++] = &net->drawing;
    for (int i = 0; i < count; i++)
        problems[i].matmul = &all[i]->desc;
    check(gemmepi_precompile(context, problems, (size_t)count, 0, isatty(2) ? show_planned : NULL, NULL));
    for (int i = 0; i < count; i++) {
        check(gemmepi_plan_matmul(context, &all[i]->desc, &all[i]->plan));
        check(gemmepi_plan_prepare(all[i]->plan, NULL));
    }
}

static void close_network(network *net) {
    for (int i = 0; i < net->count; i++) {
        gemmepi_plan_destroy(net->layers[i].forward.plan);
        gemmepi_plan_destroy(net->layers[i].backward.plan);
        gemmepi_plan_destroy(net->layers[i].update.plan);
    }
    gemmepi_plan_destroy(net->drawing.plan);
    for (int i = 0; i < net->block_count; i++)
        check(gemmepi_free(context, net->blocks[i]));
}

/* ---- a step ---- */

/* A batch of the picture's pixels from `first` on through the network: dz of the last layer, and the loss is added up. */
static void forward(network *net, int first) {
    layer *last = &net->layers[net->count - 1];
    net->layers[0].forward.args.a = net->layers[0].update.args.a = net->coordinates + (size_t)first * 4;
    last->forward.pointers[1] = net->targets + (size_t)first * 3;
    for (layer *l = net->layers; l <= last; l++)
        run(&l->forward);
}

/* dz of all layers, and unless the rate is 0 their updates: each behind the last product that reads its weights. */
static void backward(network *net) {
    for (int i = net->count - 1; i >= 0; i--) {
        if (i > 0)
            run(&net->layers[i - 1].backward);
        if (net->rate != 0)
            run(&net->layers[i].update);
    }
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

/* The bare product of an update is the gradient. */
static void read_gradient(const layer *l, float *gradient, size_t count) {
    gemmepi_matmul_desc desc = l->update.desc;
    gemmepi_matmul_args args = {.a = l->update.args.a, .b = l->update.args.b};
    desc.formula = desc.formula_value = desc.formula_result = NULL;
    desc.operands = NULL, desc.operand_count = 0;
    check(gemmepi_alloc(context, count * sizeof *gradient, &args.d));
    check(gemmepi_matmul(context, &desc, &args, NULL));
    check(gemmepi_download(context, gradient, args.d, count * sizeof *gradient, NULL));
    check(gemmepi_free(context, args.d));
}

/* Some weights and biases of a layer go up, down and back. */
static void check_layer(network *net, const layer *l) {
    const size_t count = (size_t)(l->in + 1) * (size_t)l->out;
    float *w = allocate(count, sizeof *w), *gradient = allocate(count, sizeof *gradient);
    double worst = 0, largest = 0;
    forward(net, 0);
    backward(net);
    read_gradient(l, gradient, count);
    check(gemmepi_download(context, w, l->w, count * sizeof *w, NULL));
    for (size_t i = count - 1; i < count; i -= (count + 11) / 12) { /* below 0 it is huge */
        const float up = w[i] + 1e-3f, down = w[i] - 1e-3f;
        const double rise = loss_at(net, &l->w[i], up) - loss_at(net, &l->w[i], down);
        const double slope = rise / ((double)up - (double)down);
        loss_at(net, &l->w[i], w[i]);
        worst = fmax(worst, fabs((double)gradient[i] - slope));
        largest = fmax(largest, fabs(slope));
    }
    printf("layer of %3d to %3d: its gradient is the slope of the loss within %.0e of the largest\n", l->in,
           l->out, worst / largest);
    if (!(worst < 0.02 * largest)) /* a NaN too */
        fail("gradient", "it is not the slope of the loss");
    free(w);
    free(gradient);
}

/* ---- learning ---- */

/* Where pixel i of a picture is, from -1 to 1 each way, then the one. */
static void locate(int i, int width, int height, float to[4]) {
    to[0] = (float)(2 * (i % width + 0.5) / width - 1);
    to[1] = (float)(2 * (i / width + 0.5) / height - 1);
    to[2] = 1, to[3] = 0;
}

/* The picture's pixels in random order, so that each batch is of the whole picture. */
static void place_picture(network *net, const picture *p, uint64_t *random) {
    const size_t count = (size_t)net->pixels;
    float *x = allocate(count, 4 * sizeof *x), *y = allocate(count, 3 * sizeof *y);
    int *order = allocate(count, sizeof *order);
    for (int i = 0; i < net->pixels; i++) {
        const int other = (int)(uniform(random) * (i + 1));
        order[i] = order[other], order[other] = i;
    }
    for (int i = 0; i < net->pixels; i++) {
        locate(order[i], p->width, p->height, &x[4 * i]);
        for (int j = 0; j < 3; j++)
            y[3 * i + j] = (float)p->rgb[3 * order[i] + j] / 127.5f - 1;
    }
    net->coordinates = place(net, x, count * 4);
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
    float *x = allocate((size_t)batch, 4 * sizeof *x), *y = allocate((size_t)batch, 3 * sizeof *y);
    picture p = new_picture(width, height);
    net->layers[0].forward.args.a = net->place;
    for (int i = 0; i < pixels; i += batch) {
        const int first = i < pixels - batch ? i : pixels - batch;
        for (int j = 0; j < batch; j++)
            locate(first + j, width, height, &x[4 * j]);
        check(gemmepi_upload(context, net->place, x, (size_t)batch * 4 * sizeof *x, NULL));
        for (int l = 0; l + 1 < net->count; l++)
            run(&net->layers[l].forward);
        run(&net->drawing);
        check(gemmepi_download(context, y, net->colour, (size_t)batch * 3 * sizeof *y, NULL));
        for (int j = 0; j < 3 * batch; j++)
            p.rgb[3 * first + j] = (unsigned char)(127.5f * (y[j] + 1) + 0.5f);
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

static void make_network(network *net, const picture *p, int is_small, uint64_t *random) {
    static const int sizes[2][MOST_LAYERS + 1] = {{2, 256, 256, 256, 3}, {2, 64, 64, 3}};
    const int batch = is_small ? 512 : 4096;
    char gradient[256];
    net->count = is_small ? 3 : 4;
    net->pixels = p->width * p->height;
    net->batch = net->pixels < batch ? net->pixels : batch;
    derive(gradient, sizeof gradient);
    printf("%d x %d pixels, %d sines in each of %d layers\n", p->width, p->height, sizes[is_small][1],
           net->count - 1);
    printf("formula: %s\ngradient: %s\n", sine, gradient);
    place_picture(net, p, random);
    make_memory(net, sizes[is_small], random);
    make_products(net, gradient);
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
        check_layer(net, &net->layers[i]);
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
