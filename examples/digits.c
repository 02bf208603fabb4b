/* Learns to read handwritten digits: a perceptron of 64 pixels, 128 hidden units and 10 classes. Its whole arithmetic
   but the softmax is five gemmepi products, biases, activation, gradients and updates in their epilogues:

       hidden  = act(x W1 + b1)                           and keeps pre, the pre-activation
       logits  = hidden W2 + b2
       dhidden = (g W2^T) act'(pre),  b1 += column sums of dhidden
       W2     += hidden^T g,          b2 += column sums of g
       W1     += x^T dhidden

   g is the gradient of the logits times -learning_rate / batch, so that adding gradients is the descent.

   digits [--silu] [--host] [--seed N] [--epochs N] [--data PATH] [--svg PATH] */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <io.h>
#define isatty _isatty
#else
#include <unistd.h>
#endif

enum { SIDE = 8, PIXELS = SIDE * SIDE, HIDDEN = 128, CLASSES = 10, BATCH = 32 };

static void fail(const char *what, const char *why) {
    fprintf(stderr, "digits: %s: %s\n", what, why);
    exit(1);
}

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK)
        fail(gemmepi_status_name(status), gemmepi_last_error());
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory)
        fail("memory", "exhausted");
    return memory;
}

/* ---- random numbers: our own, so that a seed means the same everywhere ---- */

/* In [0, 1). This is splitmix64. */
static double uniform(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0; /* 2^53 */
}

/* ---- data ---- */

typedef struct digits {
    int count;
    float (*pixels)[PIXELS]; /* 0 to 1                        */
    int *labels;             /* what each one is              */
    int *answers;            /* what the network last read it as */
} digits;

/* Returns how many of the line's numbers it could read. */
static int read_digit(FILE *file, float pixels[PIXELS], int *label) {
    for (int i = 0; i < PIXELS; i++) {
        int value;
        if (fscanf(file, "%2d,", &value) != 1 || value < 0 || value > 16)
            return i;
        pixels[i] = (float)value / 16;
    }
    return fscanf(file, "%2d", label) == 1 && *label >= 0 && *label < CLASSES ? PIXELS + 1 : PIXELS;
}

static digits new_digits(size_t capacity) {
    digits set = {0, allocate(capacity, sizeof *set.pixels), NULL, NULL};
    set.labels = allocate(capacity, sizeof *set.labels);
    set.answers = allocate(capacity, sizeof *set.answers);
    return set;
}

static void free_digits(digits *set) {
    free(set->pixels);
    free(set->labels);
    free(set->answers);
}

/* Every fourth digit is for testing. */
static void load_digits(const char *path, digits *training, digits *test) {
    FILE *file = fopen(path, "r");
    if (!file)
        fail(path, "cannot be read; --data PATH says where digits.csv is");
    size_t lines = 1;
    for (int c = getc(file); c != EOF; c = getc(file))
        lines += c == '\n';
    rewind(file);
    *training = new_digits(lines);
    *test = new_digits(lines);
    int numbers = PIXELS + 1;
    for (int line = 0; numbers == PIXELS + 1; line++) {
        digits *set = line % 4 == 3 ? test : training;
        numbers = read_digit(file, set->pixels[set->count], &set->labels[set->count]);
        set->count += numbers == PIXELS + 1;
    }
    if (numbers > 0 || !feof(file) || test->count == 0)
        fail(path, "a line is not 64 numbers from 0 to 16 and a class from 0 to 9");
    fclose(file);
}

static void shuffle(digits *set, uint64_t *random) {
    for (int i = set->count - 1; i > 0; i--) {
        int j = (int)(uniform(random) * (i + 1)), label = set->labels[i];
        float pixels[PIXELS];
        memcpy(pixels, set->pixels[i], sizeof pixels);
        memcpy(set->pixels[i], set->pixels[j], sizeof pixels);
        memcpy(set->pixels[j], pixels, sizeof pixels);
        set->labels[i] = set->labels[j];
        set->labels[j] = label;
    }
}

/* ---- the network ---- */

/* All that lies on the device, in one allocation; the sizes keep every member but the last aligned to 256 bytes. */
typedef struct memory {
    float w1[PIXELS * HIDDEN], b1[HIDDEN], w2[HIDDEN * CLASSES];
    float x[BATCH][PIXELS], pre[BATCH][HIDDEN], hidden[BATCH][HIDDEN], dhidden[BATCH][HIDDEN];
    float logits[BATCH][CLASSES], g[BATCH][CLASSES], b2[CLASSES];
} memory;

enum { FORWARD1, FORWARD2, BACKWARD, UPDATE2, UPDATE1, PRODUCTS };

typedef struct network {
    gemmepi_context *context;
    gemmepi_epilogue activation;
    void *memory; /* on the device: a memory */
    gemmepi_matmul_args args[PRODUCTS];
    gemmepi_plan *plans[BATCH + 1][PRODUCTS]; /* by the rows of a batch; only for those that occur */
} network;

static void set_arguments(network *net) {
    static const double one = 1;
    memory *on = net->memory;
    const gemmepi_matmul_args args[PRODUCTS] = {
        {.a = on->x, .b = on->w1, .d = on->hidden, .bias = on->b1, .aux = on->pre},
        {.a = on->hidden, .b = on->w2, .d = on->logits, .bias = on->b2},
        {.a = on->g, .b = on->w2, .d = on->dhidden, .aux = on->pre, .bias_grad = on->b1},
        {.a = on->hidden, .b = on->g, .c = on->w2, .d = on->w2, .bias_grad = on->b2, .beta = &one},
        {.a = on->x, .b = on->dhidden, .c = on->w1, .d = on->w1, .beta = &one},
    };
    memcpy(net->args, args, sizeof args);
}

static gemmepi_status plan_batch(network *net, int rows) {
    const gemmepi_epilogue act = net->activation;
    const gemmepi_matrix transposed = {.transposed = 1};
    const gemmepi_matmul_desc descs[PRODUCTS] = {
        {rows, HIDDEN, PIXELS, 1, .epilogue = act | GEMMEPI_BIAS | GEMMEPI_AUX},
        {rows, CLASSES, HIDDEN, 1, .epilogue = GEMMEPI_BIAS},
        {rows, HIDDEN, CLASSES, 1, .b = transposed,
         .epilogue = act | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_BGRAD_ACCUMULATE},
        {HIDDEN, CLASSES, rows, 1, .a = transposed, .epilogue = GEMMEPI_BGRAD_B | GEMMEPI_BGRAD_ACCUMULATE},
        {PIXELS, HIDDEN, rows, 1, .a = transposed},
    };
    gemmepi_status status = GEMMEPI_OK;
    for (int i = 0; i < PRODUCTS && !status && !net->plans[rows][i]; i++) {
        status = gemmepi_plan_matmul(net->context, &descs[i], &net->plans[rows][i]);
        if (!status)
            status = gemmepi_prepare(net->plans[rows][i], NULL);
    }
    return status;
}

/* The last batch of either set may be shorter than the others. */
static gemmepi_status open_network(network *net, int device, int training_count, int test_count) {
    const gemmepi_config config = {.device = device};
    gemmepi_status status = gemmepi_create(&config, &net->context);
    if (!status)
        status = gemmepi_alloc(net->context, sizeof(memory), &net->memory);
    if (!status)
        status = plan_batch(net, BATCH);
    if (!status)
        status = plan_batch(net, training_count % BATCH);
    if (!status)
        status = plan_batch(net, test_count % BATCH);
    if (!status)
        set_arguments(net);
    return status;
}

static void close_network(network *net) {
    for (int rows = 0; rows <= BATCH; rows++)
        for (int i = 0; i < PRODUCTS; i++)
            gemmepi_plan_destroy(net->plans[rows][i]);
    if (net->memory)
        check(gemmepi_free(net->context, net->memory));
    gemmepi_destroy(net->context);
    const network empty = {.activation = net->activation};
    *net = empty;
}

/* Weights uniform with variance 2 / inputs (He et al. 2015), all else zero. */
static void initialise(network *net, uint64_t *random) {
    memory *start = allocate(1, sizeof *start);
    for (int i = 0; i < PIXELS * HIDDEN; i++)
        start->w1[i] = (float)((2 * uniform(random) - 1) * sqrt(6.0 / PIXELS));
    for (int i = 0; i < HIDDEN * CLASSES; i++)
        start->w2[i] = (float)((2 * uniform(random) - 1) * sqrt(6.0 / HIDDEN));
    check(gemmepi_upload(net->context, net->memory, start, sizeof *start, NULL));
    free(start);
}

static void show_network(network *net) {
    static const char *const formulas[PRODUCTS] = {
        "hidden = act(x W1 + b1)", "logits = hidden W2 + b2", "dhidden = (g W2^T) act'(pre), b1 += sums",
        "W2 += hidden^T g, b2 += sums", "W1 += x^T dhidden"};
    gemmepi_context_details context;
    check(gemmepi_context_info(net->context, &context));
    printf("device: %s\n", context.name);
    for (int i = 0; i < PRODUCTS; i++) {
        gemmepi_plan_details plan;
        check(gemmepi_plan_info(net->plans[BATCH][i], &plan));
        printf("  %-42s route %s\n", formulas[i], plan.route_name);
    }
}

/* ---- training ---- */

/* Returns the cross entropy of one digit, and turns its logits into scale times their gradient. */
static double softmax(float logits[CLASSES], int label, double scale, int *answer) {
    double sum = 0, power[CLASSES];
    int best = 0;
    for (int i = 1; i < CLASSES; i++)
        best = logits[i] > logits[best] ? i : best;
    for (int i = 0; i < CLASSES; i++)
        sum += power[i] = exp((double)logits[i] - logits[best]);
    const double entropy = log(sum) + logits[best] - logits[label];
    for (int i = 0; i < CLASSES; i++)
        logits[i] = (float)(scale * (power[i] / sum - (i == label)));
    *answer = best;
    return entropy;
}

static void run(const network *net, int rows, int product) {
    check(gemmepi_plan_run(net->plans[rows][product], &net->args[product], NULL));
}

/* Reads all digits of the set, and learns from them unless learning_rate is 0. Returns the mean loss. */
static double pass(const network *net, digits *set, double learning_rate) {
    memory *on = net->memory;
    double loss = 0;
    for (int first = 0; first < set->count; first += BATCH) {
        const int rows = set->count - first < BATCH ? set->count - first : BATCH;
        float logits[BATCH][CLASSES];
        const size_t bytes = (size_t)rows * sizeof *logits;
        check(gemmepi_upload(net->context, on->x, set->pixels[first], (size_t)rows * sizeof *on->x, NULL));
        run(net, rows, FORWARD1);
        run(net, rows, FORWARD2);
        check(gemmepi_download(net->context, logits, on->logits, bytes, NULL));
        for (int i = first; i < first + rows; i++)
            loss += softmax(logits[i - first], set->labels[i], -learning_rate / BATCH, &set->answers[i]);
        if (learning_rate == 0)
            continue;
        check(gemmepi_upload(net->context, on->g, logits, bytes, NULL));
        run(net, rows, BACKWARD); /* before UPDATE2 changes the W2 that it reads */
        run(net, rows, UPDATE2);
        run(net, rows, UPDATE1);
    }
    return loss / set->count;
}

/* A bar on a terminal, ten lines elsewhere. */
static void show_progress(int epoch, int epochs, const double loss[2]) {
    const char *bar = "########################################";
    const int width = (int)strlen(bar), filled = epoch * width / epochs;
    if (isatty(1))
        printf("\r[%.*s%*s] epoch %d of %d, loss %.4f, on the test digits %.4f%s", filled, bar, width - filled,
               "", epoch, epochs, loss[0], loss[1], epoch == epochs ? "\n" : "");
    else if (epoch == epochs || epoch % ((epochs + 9) / 10) == 0)
        printf("epoch %3d of %d, loss %.4f, on the test digits %.4f\n", epoch, epochs, loss[0], loss[1]);
    fflush(stdout);
}

/* losses[epoch]: of the training digits while they were learnt, and of the test digits after that. */
static void train(const network *net, digits *training, digits *test, int epochs, uint64_t *random,
                  double (*losses)[2]) {
    const double learning_rate = 0.3; /* falls linearly to zero */
    for (int epoch = 0; epoch < epochs; epoch++) {
        shuffle(training, random);
        losses[epoch][0] = pass(net, training, learning_rate * (epochs - epoch) / epochs);
        losses[epoch][1] = pass(net, test, 0);
        if (!(losses[epoch][0] < 1e3))
            fail("training", "the loss has no bounds");
        show_progress(epoch + 1, epochs, losses[epoch]);
    }
}

/* ---- what came out ---- */

/* Prints the accuracy and draws the first few that were misread, side by side. */
static void show_answers(const digits *test) {
    enum { SHOWN = 4 };
    const char *shades = " .:-=+*#%@";
    int misread[SHOWN], count = 0, right = 0;
    for (int i = 0; i < test->count; i++)
        if (test->answers[i] == test->labels[i])
            right++;
        else if (count < SHOWN)
            misread[count++] = i;
    printf("accuracy %.2f %% (%d of %d)\n\n", 100.0 * right / test->count, right, test->count);
    for (int i = 0; i < count; i++)
        printf("%d, read as %d%s", test->labels[misread[i]], test->answers[misread[i]],
               i + 1 < count ? "        " : "\n");
    for (int y = 0; y < (count ? SIDE : 0); y++)
        for (int i = 0; i < count; i++) {
            for (int x = 0; x < SIDE; x++) {
                const int shade = shades[(int)(test->pixels[misread[i]][y * SIDE + x] * 9)];
                printf("%c%c", shade, shade); /* a character is about twice as high as it is wide */
            }
            printf(i + 1 < count ? "   " : "\n");
        }
}

/* The plot's rectangle in the SVG. */
enum { LEFT = 64, RIGHT = 616, TOP = 24, BOTTOM = 336 };

static void write_curve(FILE *file, const char *name, int line, int epochs, double (*losses)[2], double low,
                        double high) {
    fprintf(file, "<polyline class='%s' points='", name);
    for (int i = 0; i < epochs; i++)
        fprintf(file, "%.1f,%.1f ", LEFT + (double)(RIGHT - LEFT) * (i + 1) / epochs,
                BOTTOM - (BOTTOM - TOP) * (log10(losses[i][line]) - low) / (high - low));
    fprintf(file, "'/>\n<path class='%s' d='M%d %dh24'/><text x='%d' y='%d'>%s digits</text>\n", name,
            RIGHT - 136, TOP + 20 + 20 * line, RIGHT - 104, TOP + 24 + 20 * line, name);
}

/* Both losses over the epochs, on a logarithmic scale. */
static void write_svg(const char *path, int epochs, double (*losses)[2]) {
    double low = 0, high = 0;
    for (int i = 0; i < 2 * epochs; i++) {
        low = fmin(low, floor(log10(losses[i / 2][i % 2])));
        high = fmax(high, ceil(log10(losses[i / 2][i % 2])));
    }
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path, "cannot be written");
    fprintf(file,
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 400' font-family='sans-serif' font-size='13'>\n"
            "<style>\n"
            "rect { fill: #fff } text { fill: #333 } path, polyline { fill: none; stroke: #ddd }\n"
            ".training, .test { stroke: #1f6fd0; stroke-width: 2; stroke-linejoin: round } .test { stroke: #d9540f }\n"
            "@media (prefers-color-scheme: dark) { rect { fill: #16191d } text { fill: #ccc } path { stroke: #3a3f46 }\n"
            "  .training { stroke: #6aa9f4 } .test { stroke: #f59c5b } }\n"
            "</style>\n<rect width='640' height='400'/>\n");
    for (double power = low; power <= high; power++) {
        const double y = BOTTOM - (BOTTOM - TOP) * (power - low) / (high - low);
        fprintf(file, "<path d='M%d %.1fH%d'/><text x='%d' y='%.1f' text-anchor='end'>%g</text>\n", LEFT, y, RIGHT,
                LEFT - 8, y + 4, pow(10, power));
    }
    const int step = epochs > 8 ? (epochs + 7) / 8 : 1;
    for (int epoch = 0; epoch <= epochs; epoch += step) {
        const double x = LEFT + (double)(RIGHT - LEFT) * epoch / epochs;
        fprintf(file, "<path d='M%.1f %dv5'/><text x='%.1f' y='%d' text-anchor='middle'>%d</text>\n", x, BOTTOM, x,
                BOTTOM + 20, epoch);
    }
    write_curve(file, "training", 0, epochs, losses, low, high);
    write_curve(file, "test", 1, epochs, losses, low, high);
    fprintf(file, "<text x='%d' y='%d' text-anchor='middle'>epoch</text>\n", (LEFT + RIGHT) / 2, BOTTOM + 44);
    fprintf(file, "<text transform='translate(16 %d) rotate(-90)' text-anchor='middle'>loss</text>\n</svg>\n",
            (TOP + BOTTOM) / 2);
    if (ferror(file) | fclose(file))
        fail(path, "cannot be written");
    printf("\nloss curve: %s\n", path);
}

/* ---- the program ---- */

typedef struct options {
    gemmepi_epilogue activation;
    int device, seed, epochs;
    const char *data, *svg;
} options;

static int number(const char *text) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 1000000)
        fail(text, "a number from 1 to 1000000 is needed here");
    return (int)value;
}

static options read_options(int argc, char **argv) {
    options o = {GEMMEPI_GELU_TANH, 0, 1, 40, "data/digits.csv", "loss.svg"};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--silu"))
            o.activation = GEMMEPI_SILU;
        else if (!strcmp(argv[i], "--host"))
            o.device = GEMMEPI_DEVICE_HOST;
        else if (!strcmp(argv[i], "--seed"))
            o.seed = number(value), i++;
        else if (!strcmp(argv[i], "--epochs"))
            o.epochs = number(value), i++;
        else if (!strcmp(argv[i], "--data") && *value)
            o.data = value, i++;
        else if (!strcmp(argv[i], "--svg") && *value)
            o.svg = value, i++;
        else
            fail(argv[i], "known are --silu, --host, --seed N, --epochs N, --data PATH and --svg PATH");
    }
    return o;
}

int main(int argc, char **argv) {
    const options o = read_options(argc, argv);
    uint64_t random = (uint64_t)o.seed;
    digits training, test;
    load_digits(o.data, &training, &test);

    network net = {.activation = o.activation};
    gemmepi_status status = open_network(&net, o.device, training.count, test.count);
    if (status == GEMMEPI_LIBRARY_NOT_FOUND && o.device != GEMMEPI_DEVICE_HOST) {
        printf("%s\nso this runs on the host\n", gemmepi_last_error());
        close_network(&net);
        status = open_network(&net, GEMMEPI_DEVICE_HOST, training.count, test.count);
    }
    check(status);
    show_network(&net);
    initialise(&net, &random);

    double(*losses)[2] = allocate((size_t)o.epochs, sizeof *losses);
    train(&net, &training, &test, o.epochs, &random, losses);
    show_answers(&test);
    write_svg(o.svg, o.epochs, losses);

    free(losses);
    close_network(&net);
    free_digits(&training);
    free_digits(&test);
    return 0;
}
