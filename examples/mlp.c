/* Learns to read handwritten digits with two layers: hidden = value * silu(gate), where value and gate are the halves of
   x w1 + b1, and logits = hidden w2 + b2. Each layer is two calls: gemmepi_linear and gemmepi_linear_backward. The second
   layer's backward knows the first one, and goes through its gates in the product itself. Before it learns, it holds gradients of weights and biases against slopes of the loss. On the GPU if there is one, else on the host.

       mlp [--host] [--seed N] [--epochs N] [PATH] */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 64, HIDDEN = 96, CLASSES = 10, BATCH = 32, MOST_DIGITS = 2000 };

static gemmepi_context *context;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "mlp: %s: %s\n", what, why);
    exit(1);
}

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK)
        fail(gemmepi_status_name(status), gemmepi_last_error());
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
    digit all[MOST_DIGITS];
    int count;
} digits;

static int read_digit(FILE *file, digit *to) {
    int value = 0, numbers = 0;
    for (; numbers <= PIXELS && fscanf(file, "%2d,", &value) == 1; numbers++)
        if (numbers < PIXELS)
            to->pixels[numbers] = (float)value / 16;
    to->label = value;
    return numbers > PIXELS && value >= 0 && value < CLASSES;
}

/* Every fourth digit is for testing. */
static void load_digits(const char *path, digits *training, digits *test) {
    FILE *file = fopen(path, "r");
    digit next = {{0}, 0, 0};
    if (!file)
        fail(path, "cannot be read; the path of digits.csv may be given");
    for (int i = 0; i < MOST_DIGITS && read_digit(file, &next); i++) {
        digits *set = i % 4 == 3 ? test : training;
        set->all[set->count++] = next;
    }
    if (!feof(file) || training->count < BATCH || test->count == 0)
        fail(path, "its lines must be 64 numbers from 0 to 16 and a class from 0 to 9, 2000 of them at most");
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

typedef struct parameters {
    float w1[PIXELS * 2 * HIDDEN], b1[2 * HIDDEN]; /* of values, then of gates */
    float w2[HIDDEN * CLASSES], b2[CLASSES];
} parameters;

typedef struct batch {
    float x[BATCH][PIXELS], preact[BATCH][2 * HIDDEN], hidden[BATCH][HIDDEN], logits[BATCH][CLASSES];
    float dlogits[BATCH][CLASSES], dpreact[BATCH][2 * HIDDEN];
} batch;

/* Pointers to the device: to point into, not to read from here. */
typedef struct network {
    parameters *now;  /* what the layers multiply by and add */
    parameters *next; /* what their gradients are added to */
    batch *batch;
} network;

typedef struct layer {
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
} layer;

/* Gradients of weights and biases are added to what is there. The second layer's da is dpreact, not the gradient of hidden, which is
   nowhere: its desc and args point to the first one's, which stay where they are. */
static void make_layers(const network *net, int rows, layer *first, layer *second) {
    const uint64_t flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_DB | GEMMEPI_ACCUMULATE_DB |
                           GEMMEPI_LINEAR_DBIAS | GEMMEPI_ACCUMULATE_DBIAS;
    parameters *now = net->now, *next = net->next;
    batch *on = net->batch;
    first->desc = (gemmepi_linear_desc){.m = rows, .n = 2 * HIDDEN, .k = PIXELS};
    first->desc.activation = GEMMEPI_SILU | GEMMEPI_GATED;
    first->desc.flags = flags | GEMMEPI_LINEAR_SAVED /* x w1 + b1 in preact, for backward */
                        | GEMMEPI_LINEAR_DY_IS_G;    /* dy is dpreact */
    first->args = (gemmepi_linear_args){.a = on->x, .b = now->w1, .bias = now->b1, .y = on->hidden};
    first->args.preact = on->preact;
    first->args.dy = on->dpreact, first->args.db = next->w1, first->args.dbias = next->b1;

    second->desc = (gemmepi_linear_desc){.m = rows, .n = CLASSES, .k = HIDDEN};
    second->desc.flags = flags | GEMMEPI_LINEAR_DA;
    second->desc.before = &first->desc;
    second->args = (gemmepi_linear_args){.a = on->hidden, .b = now->w2, .bias = now->b2, .y = on->logits};
    second->args.before = &first->args;
    second->args.da = on->dpreact;
    second->args.dy = on->dlogits, second->args.db = next->w2, second->args.dbias = next->b2;
}

static void tell(void *user, size_t done, size_t count) {
    (void)user;
    fprintf(stderr, "\rplanned %d of %d%s", (int)done, (int)count, done < count ? "" : "\n");
}

/* Compiles what both layers need, side by side: else each would wait for its turn in the first batch. */
static void precompile(const network *net) {
    layer first, second;
    make_layers(net, BATCH, &first, &second);
    const gemmepi_any_desc problems[] = {{.linear = &first.desc},
                                         {.linear = &second.desc},
                                         {.linear_backward = &first.desc},
                                         {.linear_backward = &second.desc}};
    check(gemmepi_precompile(context, problems, sizeof problems / sizeof problems[0], 0, tell, NULL));
}

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

/* Reads these digits, and unless scale is 0, adds scale times the gradients of their loss to net->next. Returns the loss. */
static double read_batch(const network *net, digit *of, int rows, double scale) {
    float x[BATCH][PIXELS], logits[BATCH][CLASSES];
    double loss = 0;
    layer first, second;
    make_layers(net, rows, &first, &second);
    for (int i = 0; i < rows; i++)
        memcpy(x[i], of[i].pixels, sizeof x[i]);
    check(gemmepi_upload(context, net->batch->x, x, (size_t)rows * sizeof x[0], NULL));
    check(gemmepi_linear(context, &first.desc, &first.args, NULL));
    check(gemmepi_linear(context, &second.desc, &second.args, NULL));
    check(gemmepi_download(context, logits, net->batch->logits, (size_t)rows * sizeof logits[0], NULL));
    for (int i = 0; i < rows; i++)
        loss += softmax(logits[i], &of[i], scale);
    if (scale == 0)
        return loss;
    check(gemmepi_upload(context, net->batch->dlogits, logits, (size_t)rows * sizeof logits[0], NULL));
    check(gemmepi_linear_backward(context, &second.desc, &second.args, NULL));
    check(gemmepi_linear_backward(context, &first.desc, &first.args, NULL));
    return loss;
}

/* ---- training ---- */

/* Momentum keeps going the way of the last step: w + 0.9 (w - the w before) - rate * gradient. The w before is in next,
   where gemmepi_lerp puts the first two terms; the layers add the third. */
static double learn(network *net, digit *of, int rows, double rate) {
    static const int64_t shape[1] = {sizeof(parameters) / sizeof(float)};
    const gemmepi_tensor now = {.data = net->now, .rank = 1, .shape = shape};
    const gemmepi_tensor next = {.data = net->next, .rank = 1, .shape = shape};
    check(gemmepi_lerp(context, &next, &now, NULL, 1.9, &next, NULL));
    const double loss = read_batch(net, of, rows, -rate / rows);
    net->now = next.data, net->next = now.data;
    return loss;
}

/* All digits of the set, learnt unless rate is 0. Returns their mean loss. */
static double read_all(network *net, digits *set, double rate) {
    double loss = 0;
    for (int i = 0; i < set->count; i += BATCH) {
        const int rows = set->count - i < BATCH ? set->count - i : BATCH;
        loss += rate == 0 ? read_batch(net, &set->all[i], rows, 0) : learn(net, &set->all[i], rows, rate);
    }
    return loss / set->count;
}

/* ---- gradients against slopes ---- */

/* Of some of the parameters in one matrix or vector, which is on the device: each goes up, down and back. */
static void check_some(const char *name, const network *net, digit *of, float *there, const float *values,
                       const float *gradients, int count) {
    double worst = 0, largest = 0;
    for (int i = 0; i < count; i += (count + 31) / 32) {
        const float moved[3] = {values[i] + 0.01f, values[i] - 0.01f, values[i]};
        double losses[3];
        for (int j = 0; j < 3; j++) {
            check(gemmepi_upload(context, &there[i], &moved[j], sizeof moved[j], NULL));
            losses[j] = read_batch(net, of, BATCH, 0);
        }
        const double slope = (losses[0] - losses[1]) / ((double)moved[0] - (double)moved[1]);
        worst = fmax(worst, fabs((double)gradients[i] - slope));
        largest = fmax(largest, fabs(slope));
    }
    printf("d%s is the slope of the loss within %.0e of its largest\n", name, worst / largest);
    if (!(worst < 0.01 * largest)) /* a NaN too */
        fail(name, "its gradient is not the slope of the loss");
}

static void check_gradients(const network *net, digit *of, const parameters *at) {
    static parameters sums; /* zeros, to which gradients are added */
    check(gemmepi_upload(context, net->next, &sums, sizeof sums, NULL));
    read_batch(net, of, BATCH, 1);
    check(gemmepi_download(context, &sums, net->next, sizeof sums, NULL));
    check_some("w1", net, of, net->now->w1, at->w1, sums.w1, PIXELS * 2 * HIDDEN);
    check_some("b1", net, of, net->now->b1, at->b1, sums.b1, 2 * HIDDEN);
    check_some("w2", net, of, net->now->w2, at->w2, sums.w2, HIDDEN * CLASSES);
    check_some("b2", net, of, net->now->b2, at->b2, sums.b2, CLASSES);
}

/* ---- the program ---- */

static int number(const char *text) {
    const int value = atoi(text);
    if (value < 1)
        fail(text, "a number from 1 on is needed here");
    return value;
}

int main(int argc, char **argv) {
    static digits training, test;
    static parameters start;
    gemmepi_config config = {.device = 0};
    gemmepi_context_details details;
    const char *data = "data/digits.csv";
    uint64_t random = 1;
    int epochs = 20, right = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--host"))
            config.device = GEMMEPI_DEVICE_HOST;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            random = (uint64_t)number(argv[++i]);
        else if (!strcmp(argv[i], "--epochs") && i + 1 < argc)
            epochs = number(argv[++i]);
        else if (argv[i][0] != '-')
            data = argv[i];
        else
            fail(argv[i], "known are --host, --seed N, --epochs N and the path of digits.csv");
    }
    load_digits(data, &training, &test);
    check(gemmepi_create(&config, &context));
    check(gemmepi_context_info(context, &details));
    if (details.fallback_reason[0])
        fprintf(stderr, "no GPU is used: %s\n", details.fallback_reason);
    printf("device: %s\n", details.name);

    /* weights uniform with variance 1 / inputs, biases zero */
    for (int i = 0; i < PIXELS * 2 * HIDDEN; i++)
        start.w1[i] = (float)((2 * uniform(&random) - 1) * sqrt(3.0 / PIXELS));
    for (int i = 0; i < HIDDEN * CLASSES; i++)
        start.w2[i] = (float)((2 * uniform(&random) - 1) * sqrt(3.0 / HIDDEN));
    void *memory[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; i++)
        check(gemmepi_alloc(context, i < 2 ? sizeof(parameters) : sizeof(batch), &memory[i]));
    network net = {memory[0], memory[1], memory[2]};
    precompile(&net);
    check(gemmepi_upload(context, net.now, &start, sizeof start, NULL));
    check_gradients(&net, training.all, &start);

    check(gemmepi_upload(context, net.next, &start, sizeof start, NULL)); /* no step was before */
    for (int i = 1; i <= epochs; i++) {
        shuffle(&training, &random);
        const double loss = read_all(&net, &training, 0.05 * (epochs + 1 - i) / epochs);
        printf("epoch %2d of %d, training loss %.4f, ", i, epochs, loss);
        printf("test loss %.4f\n", read_all(&net, &test, 0));
    }
    for (int i = 0; i < test.count; i++)
        right += test.all[i].answer == test.all[i].label;
    printf("accuracy %.2f %% (%d of %d)\n", 100.0 * right / test.count, right, test.count);

    for (int i = 0; i < 3; i++)
        check(gemmepi_free(context, memory[i]));
    gemmepi_destroy(context);
    return 0;
}
