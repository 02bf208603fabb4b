/* Learns to read handwritten digits: a perceptron of 64 pixels, 128 hidden units and 10 classes. All its
   arithmetic but the softmax is five gemmepi products, biases, activation and gradients in their epilogues.

       digits [--silu] [--host] [--seed N] [--epochs N] [--svg PATH] [[--data] PATH] */
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

/* From 0 to below 1, by splitmix64: a generator of our own, so that a seed means the same everywhere. */
static double uniform(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0; /* 2^53 */
}

/* ---- the digits ---- */

typedef struct digit {
    float pixels[PIXELS]; /* 0 to 1 */
    int label, answer;    /* what it is, and what the network read it as */
} digit;

typedef struct digits {
    digit *all;
    int count;
} digits;

/* Returns how many of the line's numbers it could read. */
static int read_digit(FILE *file, digit *to) {
    for (int i = 0; i < PIXELS; i++) {
        int value;
        if (fscanf(file, "%2d,", &value) != 1 || value < 0 || value > 16)
            return i;
        to->pixels[i] = (float)value / 16;
    }
    return fscanf(file, "%2d", &to->label) == 1 && to->label >= 0 && to->label < CLASSES ? PIXELS + 1
                                                                                         : PIXELS;
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
    training->all = allocate(lines, sizeof(digit));
    test->all = allocate(lines, sizeof(digit));
    int numbers = PIXELS + 1;
    for (int line = 0; numbers == PIXELS + 1; line++) {
        digits *set = line % 4 == 3 ? test : training;
        numbers = read_digit(file, &set->all[set->count]);
        set->count += numbers == PIXELS + 1;
    }
    if (numbers > 0 || !feof(file) || test->count == 0)
        fail(path, "its lines must be 64 numbers from 0 to 16 and a class from 0 to 9");
    fclose(file);
}

static void shuffle(digits *set, uint64_t *random) {
    for (int i = set->count - 1; i > 0; i--) {
        const int j = (int)(uniform(random) * (i + 1));
        const digit swapped = set->all[i];
        set->all[i] = set->all[j];
        set->all[j] = swapped;
    }
}

/* ---- the network ---- */

/* What is on the device, in one allocation. The sizes happen to keep all members aligned to 256 bytes. */
typedef struct tensors {
    float w1[PIXELS * HIDDEN], b1[HIDDEN], w2[HIDDEN * CLASSES];
    float x[BATCH][PIXELS], pre[BATCH][HIDDEN], hidden[BATCH][HIDDEN], dhidden[BATCH][HIDDEN];
    float logits[BATCH][CLASSES], g[BATCH][CLASSES], b2[CLASSES];
} tensors;

typedef struct product {
    const char *formula;
    gemmepi_matmul_desc desc;
    gemmepi_matmul_args args;
    gemmepi_plan *plan;
} product;

enum { FORWARD1, FORWARD2, BACKWARD, UPDATE2, UPDATE1, PRODUCTS };

typedef struct network {
    gemmepi_context *context;
    gemmepi_epilogue activation;
    void *memory;                          /* on the device: tensors */
    product products[BATCH + 1][PRODUCTS]; /* by the rows of a batch, for those numbers of rows that occur */
} network;

/* g is the gradient of the logits times -learning_rate / BATCH, so that adding gradients is the descent. */
static gemmepi_status plan_products(network *net, int rows) {
    static const gemmepi_matrix transposed = {.transposed = 1};
    const gemmepi_epilogue act = net->activation;
    tensors *on = net->memory;
    const product products[PRODUCTS] = {
        {.formula = "hidden = act(pre = x W1 + b1)",
         .desc = {rows, HIDDEN, PIXELS, .epilogue = act | GEMMEPI_BIAS | GEMMEPI_AUX},
         .args = {.a = on->x, .b = on->w1, .bias = on->b1, .aux = on->pre, .d = on->hidden}},
        {.formula = "logits = hidden W2 + b2",
         .desc = {rows, CLASSES, HIDDEN, .epilogue = GEMMEPI_BIAS},
         .args = {.a = on->hidden, .b = on->w2, .bias = on->b2, .d = on->logits}},
        {.formula = "dhidden = (g W2^T) act'(pre), b1 += its sums",
         .desc = {rows, HIDDEN, CLASSES, .b = transposed,
                  .epilogue = act | GEMMEPI_BACKWARD | GEMMEPI_BGRAD | GEMMEPI_ACCUMULATE_BIAS_GRAD},
         .args = {.a = on->g, .b = on->w2, .aux = on->pre, .bias_grad = on->b1, .d = on->dhidden}},
        {.formula = "W2 += hidden^T g, b2 += sums of g",
         .desc = {HIDDEN, CLASSES, rows, .a = transposed, .flags = GEMMEPI_ACCUMULATE,
                  .epilogue = GEMMEPI_BGRAD_B | GEMMEPI_ACCUMULATE_BIAS_GRAD},
         .args = {.a = on->hidden, .b = on->g, .bias_grad = on->b2, .d = on->w2}},
        {.formula = "W1 += x^T dhidden",
         .desc = {PIXELS, HIDDEN, rows, .a = transposed, .flags = GEMMEPI_ACCUMULATE},
         .args = {.a = on->x, .b = on->dhidden, .d = on->w1}},
    };
    gemmepi_status status = GEMMEPI_OK;
    for (int i = 0; i < PRODUCTS && !status && !net->products[rows][i].plan; i++) {
        product *p = &net->products[rows][i];
        *p = products[i];
        status = gemmepi_plan_matmul(net->context, &p->desc, &p->plan);
        if (!status)
            status = gemmepi_plan_prepare(p->plan, NULL);
    }
    return status;
}

/* rows: the sizes of batch that will occur. After a failure, too, close_network is to be called. */
static gemmepi_status open_network(network *net, int device, const int rows[3]) {
    const gemmepi_config config = {.device = device};
    gemmepi_status status = gemmepi_create(&config, &net->context);
    if (!status)
        status = gemmepi_alloc(net->context, sizeof(tensors), &net->memory);
    for (int i = 0; i < 3 && !status; i++)
        status = plan_products(net, rows[i]);
    return status;
}

static void close_network(network *net) {
    for (int i = 0; i < (BATCH + 1) * PRODUCTS; i++) {
        product *p = &net->products[i / PRODUCTS][i % PRODUCTS];
        gemmepi_plan_destroy(p->plan);
        p->plan = NULL;
    }
    if (net->context)
        check(gemmepi_free(net->context, net->memory));
    gemmepi_destroy(net->context);
    net->context = net->memory = NULL;
}

/* Weights uniform with variance 2 / inputs (He et al., 2015), biases zero. */
static void initialise(const network *net, uint64_t *random) {
    tensors *start = allocate(1, sizeof *start);
    for (int i = 0; i < PIXELS * HIDDEN; i++)
        start->w1[i] = (float)((2 * uniform(random) - 1) * sqrt(6.0 / PIXELS));
    for (int i = 0; i < HIDDEN * CLASSES; i++)
        start->w2[i] = (float)((2 * uniform(random) - 1) * sqrt(6.0 / HIDDEN));
    check(gemmepi_upload(net->context, net->memory, start, sizeof *start, NULL));
    free(start);
}

static void show_network(const network *net) {
    gemmepi_context_details context;
    check(gemmepi_context_info(net->context, &context));
    printf("device: %s\n", context.name);
    if (context.fallback_reason[0])
        fprintf(stderr, "no GPU is used: %s\n", context.fallback_reason);
    for (int i = 0; i < PRODUCTS; i++) {
        gemmepi_plan_details plan;
        check(gemmepi_plan_info(net->products[BATCH][i].plan, &plan));
        printf("  %-46s route: %s\n", net->products[BATCH][i].formula, plan.route_name);
    }
}

/* ---- training ---- */

/* Returns the cross entropy of one digit, and turns its logits into scale times their gradient. */
static double softmax(float logits[CLASSES], digit *of, double scale) {
    double sum = 0, power[CLASSES];
    of->answer = 0;
    for (int i = 1; i < CLASSES; i++)
        of->answer = logits[i] > logits[of->answer] ? i : of->answer;
    const double largest = logits[of->answer], right = logits[of->label];
    for (int i = 0; i < CLASSES; i++)
        sum += power[i] = exp(logits[i] - largest);
    for (int i = 0; i < CLASSES; i++)
        logits[i] = (float)(scale * (power[i] / sum - (i == of->label)));
    return log(sum) + largest - right;
}

static void run(const product *p) {
    check(gemmepi_run_matmul(p->plan, &p->args, NULL));
}

/* Reads all digits of the set, and learns from them unless learning_rate is 0. Returns the mean loss. */
static double read_all(const network *net, digits *set, double learning_rate) {
    tensors *on = net->memory;
    double loss = 0;
    for (int first = 0; first < set->count; first += BATCH) {
        const int rows = set->count - first < BATCH ? set->count - first : BATCH;
        const product *products = net->products[rows];
        float x[BATCH][PIXELS], logits[BATCH][CLASSES];
        for (int i = 0; i < rows; i++)
            memcpy(x[i], set->all[first + i].pixels, sizeof x[i]);
        check(gemmepi_upload(net->context, on->x, x, (size_t)rows * sizeof x[0], NULL));
        run(&products[FORWARD1]);
        run(&products[FORWARD2]);
        check(gemmepi_download(net->context, logits, on->logits, (size_t)rows * sizeof logits[0], NULL));
        for (int i = 0; i < rows; i++)
            loss += softmax(logits[i], &set->all[first + i], -learning_rate / BATCH);
        if (learning_rate == 0)
            continue;
        check(gemmepi_upload(net->context, on->g, logits, (size_t)rows * sizeof logits[0], NULL));
        run(&products[BACKWARD]); /* reads W2, so it comes before its update */
        run(&products[UPDATE2]);
        run(&products[UPDATE1]);
    }
    return loss / set->count;
}

/* loss: of the training digits while they were learnt, and of the test digits after that. */
typedef struct epoch {
    double loss[2];
} epoch;

/* A bar on a terminal, ten lines elsewhere. */
static void show_progress(const epoch *now, int done, int epochs) {
    const char *bar = "####################";
    const int filled = done * 20 / epochs;
    if (isatty(1))
        printf("\r[%.*s%*s] ", filled, bar, 20 - filled, "");
    else if (done < epochs && done % ((epochs + 9) / 10))
        return;
    printf("epoch %3d of %d, training loss %.4f, test loss %.4f", done, epochs, now->loss[0], now->loss[1]);
    if (!isatty(1) || done == epochs)
        putchar('\n');
    fflush(stdout);
}

static void train(const network *net, digits *training, digits *test, epoch *curve, int epochs,
                  uint64_t *random) {
    /* Falls linearly to zero. Of 0.3, 0.5, 0.8, 1.2 and 2 the best with a third of the training digits held
       back, to within noise. */
    const double learning_rate = 0.8;
    for (int i = 0; i < epochs; i++) {
        shuffle(training, random);
        curve[i].loss[0] = read_all(net, training, learning_rate * (epochs - i) / epochs);
        curve[i].loss[1] = read_all(net, test, 0);
        if (!(curve[i].loss[0] < 1e3)) /* a NaN too */
            fail("training", "the loss grows without bound");
        show_progress(&curve[i], i + 1, epochs);
    }
}

/* ---- what came of it ---- */

/* Prints the accuracy and draws the first few digits that were misread, side by side. */
static void show_answers(const digits *test) {
    enum { SHOWN = 4 };
    const digit *misread[SHOWN];
    int wrong = 0;
    for (int i = 0; i < test->count; i++)
        if (test->all[i].answer != test->all[i].label && wrong++ < SHOWN)
            misread[wrong - 1] = &test->all[i];
    const int right = test->count - wrong, shown = wrong < SHOWN ? wrong : SHOWN;
    printf("accuracy %.2f %% (%d of %d)\n\n", 100.0 * right / test->count, right, test->count);
    for (int i = 0; i < shown; i++)
        printf("%d, read as %d%s", misread[i]->label, misread[i]->answer, i + 1 < shown ? "        " : "\n");
    for (int y = 0; y < SIDE && shown; y++)
        for (int i = 0; i < shown; i++) {
            for (int x = 0; x < SIDE; x++) {
                const int shade = " .:-=+*#%@"[(int)(misread[i]->pixels[y * SIDE + x] * 9)];
                printf("%c%c", shade, shade); /* two, because a character is half as wide as it is high */
            }
            printf(i + 1 < shown ? "   " : "\n");
        }
}

/* The plot's rectangle in the SVG. */
enum { LEFT = 64, RIGHT = 616, TOP = 52, BOTTOM = 336 };

static double plot_x(int done, int epochs) {
    return LEFT + (double)(RIGHT - LEFT) * done / epochs;
}

static double plot_y(double loss, double lowest) {
    return TOP + (BOTTOM - TOP) * fmin(log10(loss) / log10(lowest), 1);
}

/* One of the losses and its line in the legend. */
static void write_line(FILE *file, const epoch *curve, int epochs, int which, double lowest) {
    const char *name = which ? "test" : "training";
    const int y = TOP + 20 + 20 * which;
    fprintf(file, "<path class='%s' d='M%d %dh24'/>", name, RIGHT - 136, y);
    fprintf(file, "<text x='%d' y='%d'>%s digits</text>\n", RIGHT - 104, y + 4, name);
    fprintf(file, "<polyline class='%s' points='", name);
    for (int i = 0; i < epochs; i++)
        fprintf(file, "%.1f,%.1f ", plot_x(i + 1, epochs), plot_y(curve[i].loss[which], lowest));
    fputs("'/>\n", file);
}

/* The title, and what the axes are. */
static void write_words(FILE *file) {
    fprintf(file, "<text x='%d' y='30' font-size='16'>Learning to read handwritten digits</text>\n", LEFT);
    fprintf(file, "<text x='%d' y='%d' text-anchor='middle'>epoch (each training digit once)</text>\n",
            (LEFT + RIGHT) / 2, BOTTOM + 44);
    fprintf(file, "<text transform='translate(16 %d) rotate(-90)' text-anchor='middle'>", (TOP + BOTTOM) / 2);
    fputs("loss (mean cross entropy of a digit, in nats)</text>\n", file);
}

/* Both losses by epoch, on a logarithmic scale from 1 down to the power of ten below the least. */
static void write_svg(const char *path, const epoch *curve, int epochs) {
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path, "cannot be written");
    double lowest = 0.1;
    for (int i = 0; i < 2 * epochs; i++)
        while (lowest > curve[i / 2].loss[i % 2] && lowest > 1e-6)
            lowest /= 10;
    fputs(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 640 400' font-family='sans-serif' font-size='13'>\n"
        "<style>\n"
        "rect { fill: #fff } text { fill: #333 } path, polyline { fill: none; stroke: #ddd }\n"
        ".training, .test { stroke: #1f6fd0; stroke-width: 2 } .test { stroke: #d9540f }\n"
        "@media (prefers-color-scheme: dark) {\n"
        "    rect { fill: #16191d } text { fill: #ccc } path { stroke: #3a3f46 }\n"
        "    .training { stroke: #6aa9f4 } .test { stroke: #f59c5b }\n"
        "}\n"
        "</style>\n<title>Learning to read handwritten digits</title>\n<rect width='640' height='400'/>\n",
        file);
    for (double loss = 1; loss > lowest * 0.9; loss /= 10)
        fprintf(file, "<path d='M%d %.1fH%d'/><text x='%d' y='%.1f' text-anchor='end'>%g</text>\n", LEFT,
                plot_y(loss, lowest), RIGHT, LEFT - 8, plot_y(loss, lowest) + 4, loss);
    for (int i = 0; i <= epochs; i += (epochs + 7) / 8)
        fprintf(file, "<path d='M%.1f %dv5'/><text x='%.1f' y='%d' text-anchor='middle'>%d</text>\n",
                plot_x(i, epochs), BOTTOM, plot_x(i, epochs), BOTTOM + 20, i);
    for (int line = 0; line < 2; line++)
        write_line(file, curve, epochs, line, lowest);
    write_words(file);
    fputs("</svg>\n", file);
    const int broken = ferror(file);
    if (fclose(file) || broken)
        fail(path, "cannot be written");
    printf("\nloss curve: %s\n", path);
}

/* ---- the program ---- */

typedef struct options {
    gemmepi_epilogue activation;
    int device, seed, epochs;
    const char *svg, *data;
} options;

static int number(const char *text) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 100000)
        fail(text, "a number from 1 to 100000 is needed here");
    return (int)value;
}

static options read_options(int argc, char **argv) {
    options o = {GEMMEPI_GELU_TANH, 0, 1, 40, "loss.svg", "data/digits.csv"};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--silu"))
            o.activation = GEMMEPI_SILU;
        else if (!strcmp(argv[i], "--host"))
            o.device = GEMMEPI_DEVICE_HOST;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            o.seed = number(argv[++i]);
        else if (!strcmp(argv[i], "--epochs") && i + 1 < argc)
            o.epochs = number(argv[++i]);
        else if (!strcmp(argv[i], "--svg") && i + 1 < argc)
            o.svg = argv[++i];
        else if (!strcmp(argv[i], "--data") && i + 1 < argc)
            o.data = argv[++i];
        else if (argv[i][0] != '-')
            o.data = argv[i];
        else
            fail(argv[i], "known are --silu, --host, --seed N, --epochs N, --svg PATH and --data PATH");
    }
    return o;
}

int main(int argc, char **argv) {
    const options o = read_options(argc, argv);
    uint64_t random = (uint64_t)o.seed;
    digits training = {NULL, 0}, test = {NULL, 0};
    load_digits(o.data, &training, &test);

    const int rows[3] = {BATCH, training.count % BATCH, test.count % BATCH};
    network *net = allocate(1, sizeof *net);
    net->activation = o.activation;
    gemmepi_status status = open_network(net, o.device, rows);
    if (status == GEMMEPI_LIBRARY_NOT_FOUND && o.device != GEMMEPI_DEVICE_HOST) {
        printf("%s\nTherefore this runs on the host.\n", gemmepi_last_error());
        close_network(net);
        status = open_network(net, GEMMEPI_DEVICE_HOST, rows);
    }
    check(status);
    show_network(net);

    epoch *curve = allocate((size_t)o.epochs, sizeof *curve);
    initialise(net, &random);
    train(net, &training, &test, curve, o.epochs, &random);
    show_answers(&test);
    write_svg(o.svg, curve, o.epochs);

    close_network(net);
    free(net);
    free(curve);
    free(training.all);
    free(test.all);
    return 0;
}
