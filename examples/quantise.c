/* Brings a network's weights to 4 bits: learns to read handwritten digits in F32, packs the weights with scales of groups of 32, 64 and 128, and reads
   digits that it has not seen with each, beside 16 bits. Products read the packed weights by a formula of b; nothing is unpacked ahead. It holds
   what they give against plain loops, prints accuracy and bytes, and draws both.

       quantise [--host] [--seed N] [--epochs N] [--svg PATH] [PATH of digits.csv] */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIXELS = 64,
    HIDDEN = 128,
    CLASSES = 10,
    BATCH = 32,
    MOST_DIGITS = 2000,
    MOST_TESTS = 512,
    LAYERS = 2
};

static gemmepi_context *context;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "quantise: %s: %s\n", what, why);
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
    int label;
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
    digit next = {{0}, 0};
    if (!file)
        fail(path, "cannot be read; the path of digits.csv may be given");
    for (int i = 0; i < MOST_DIGITS && read_digit(file, &next); i++) {
        digits *set = i % 4 == 3 ? test : training;
        set->all[set->count++] = next;
    }
    if (!feof(file) || training->count < BATCH || test->count == 0 || test->count > MOST_TESTS)
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

/* ---- learning ---- */

/* Weights are stored [outputs, inputs], as nn.Linear has them. */
typedef struct parameters {
    float w1[HIDDEN * PIXELS], b1[HIDDEN], w2[CLASSES * HIDDEN], b2[CLASSES];
} parameters;

typedef struct batch {
    float x[BATCH][PIXELS], hidden[BATCH][HIDDEN], dhidden[BATCH][HIDDEN];
    float logits[BATCH][CLASSES], dlogits[BATCH][CLASSES];
    unsigned char mask[BATCH][HIDDEN / 8];
} batch;

typedef struct network {
    parameters *now;  /* on the device: what layers multiply by and add */
    parameters *next; /* what their gradients are added to */
    batch *batch;
} network;

typedef struct layer {
    gemmepi_linear_desc desc;
    gemmepi_linear_args args;
} layer;

/* hidden = relu(x w1^T + b1), logits = hidden w2^T + b2 */
static void make_layers(const network *net, int rows, layer *first, layer *second) {
    const uint64_t flags = GEMMEPI_LINEAR_BIAS | GEMMEPI_LINEAR_DB | GEMMEPI_ACCUMULATE_DB |
                           GEMMEPI_LINEAR_DBIAS | GEMMEPI_ACCUMULATE_DBIAS;
    parameters *now = net->now, *next = net->next;
    batch *on = net->batch;
    first->desc = (gemmepi_linear_desc){.m = rows, .n = HIDDEN, .k = PIXELS, .b = {.transposed = 1}};
    first->desc.activation = GEMMEPI_RELU, first->desc.flags = flags | GEMMEPI_LINEAR_SAVED;
    first->args = (gemmepi_linear_args){.a = on->x, .b = now->w1, .bias = now->b1, .y = on->hidden};
    first->args.preact = on->mask, first->args.dy = on->dhidden;
    first->args.db = next->w1, first->args.dbias = next->b1;
    second->desc = (gemmepi_linear_desc){.m = rows, .n = CLASSES, .k = HIDDEN, .b = {.transposed = 1}};
    second->desc.flags = flags | GEMMEPI_LINEAR_DA;
    second->args = (gemmepi_linear_args){.a = on->hidden, .b = now->w2, .bias = now->b2, .y = on->logits};
    second->args.dy = on->dlogits, second->args.da = on->dhidden;
    second->args.db = next->w2, second->args.dbias = next->b2;
}

/* Turns a digit's logits into scale times the gradient of its cross entropy, which it returns. */
static double softmax(float logits[CLASSES], int label, double scale) {
    double sum = 0, largest = (double)logits[0], right = (double)logits[label], power[CLASSES];
    for (int i = 1; i < CLASSES; i++)
        largest = fmax(largest, (double)logits[i]);
    for (int i = 0; i < CLASSES; i++)
        sum += power[i] = exp((double)logits[i] - largest);
    for (int i = 0; i < CLASSES; i++)
        logits[i] = (float)(scale * (power[i] / sum - (i == label)));
    return log(sum) + largest - right;
}

/* Momentum: next is w + 0.9 (w - the w before), to which backward adds -rate times the gradient. */
static double learn(network *net, const digit *of, int rows, double rate) {
    static const int64_t shape[1] = {sizeof(parameters) / sizeof(float)};
    const gemmepi_tensor now = {.data = net->now, .rank = 1, .shape = shape};
    const gemmepi_tensor next = {.data = net->next, .rank = 1, .shape = shape};
    float x[BATCH][PIXELS], logits[BATCH][CLASSES];
    double loss = 0;
    layer first, second;
    check(gemmepi_lerp(context, &next, &now, NULL, 1.9, &next, NULL));
    make_layers(net, rows, &first, &second);
    for (int i = 0; i < rows; i++)
        memcpy(x[i], of[i].pixels, sizeof x[i]);
    check(gemmepi_upload(context, net->batch->x, x, (size_t)rows * sizeof x[0], NULL));
    check(gemmepi_linear(context, &first.desc, &first.args, NULL));
    check(gemmepi_linear(context, &second.desc, &second.args, NULL));
    check(gemmepi_download(context, logits, net->batch->logits, (size_t)rows * sizeof logits[0], NULL));
    for (int i = 0; i < rows; i++)
        loss += softmax(logits[i], of[i].label, -rate / rows);
    check(gemmepi_upload(context, net->batch->dlogits, logits, (size_t)rows * sizeof logits[0], NULL));
    check(gemmepi_linear_backward(context, &second.desc, &second.args, NULL));
    check(gemmepi_linear_backward(context, &first.desc, &first.args, NULL));
    net->now = next.data, net->next = now.data;
    return loss;
}

static void train(digits *training, uint64_t *random, int epochs, parameters *learnt) {
    void *memory[3];
    network net;
    memset(learnt, 0, sizeof *learnt); /* weights uniform with variance 2 / inputs, biases zero */
    for (int i = 0; i < HIDDEN * PIXELS; i++)
        learnt->w1[i] = (float)((2 * uniform(random) - 1) * sqrt(6.0 / PIXELS));
    for (int i = 0; i < CLASSES * HIDDEN; i++)
        learnt->w2[i] = (float)((2 * uniform(random) - 1) * sqrt(6.0 / HIDDEN));
    for (int i = 0; i < 3; i++)
        check(gemmepi_alloc(context, i < 2 ? sizeof(parameters) : sizeof(batch), &memory[i]));
    net.now = memory[0], net.next = memory[1], net.batch = memory[2];
    check(gemmepi_upload(context, net.now, learnt, sizeof *learnt, NULL));
    check(gemmepi_upload(context, net.next, learnt, sizeof *learnt, NULL)); /* no step was before */
    for (int epoch = 1; epoch <= epochs; epoch++) {
        double loss = 0;
        shuffle(training, random);
        for (int i = 0; i + BATCH <= training->count; i += BATCH)
            loss += learn(&net, &training->all[i], BATCH, 0.05 * (epochs + 1 - epoch) / epochs);
        if (epoch % 5 == 0 || epoch == epochs)
            printf("epoch %2d of %d, training loss %.4f\n", epoch, epochs, loss / training->count);
    }
    check(gemmepi_download(context, learnt, net.now, sizeof *learnt, NULL));
    for (int i = 0; i < 3; i++)
        check(gemmepi_free(context, memory[i]));
}

/* ---- weights in few bits ---- */

/* How weights are stored: a scale and, in U4, a zero of each `group` inputs of an output. */
typedef struct format {
    const char *name;
    gemmepi_dtype dtype, scale;
    int group, has_zero;
    const char *formula; /* of b, what products read */
} format;

static const format formats[] = {
    {"16 bits", GEMMEPI_F16, GEMMEPI_DTYPE_DEFAULT, 0, 0, NULL},
    {"8 bits, a scale for each output", GEMMEPI_I8, GEMMEPI_F16, 128, 0, "b * scale"},
    {"4 bits, groups of 32", GEMMEPI_U4, GEMMEPI_F16, 32, 1, "(b - zero) * scale"},
    {"4 bits, groups of 64", GEMMEPI_U4, GEMMEPI_F16, 64, 1, "(b - zero) * scale"},
    {"4 bits, groups of 128", GEMMEPI_U4, GEMMEPI_F16, 128, 1, "(b - zero) * scale"},
    {"4 bits without zeros, groups of 32", GEMMEPI_I4, GEMMEPI_F16, 32, 0, "b * scale"},
    {"MXFP4, groups of 32", GEMMEPI_E2M1, GEMMEPI_E8M0, 32, 0, "b * scale"},
};
enum { FORMATS = sizeof formats / sizeof *formats };

/* On the host. */
typedef struct packed {
    unsigned char weights[2 * HIDDEN * PIXELS];
    unsigned char scales[2 * HIDDEN * PIXELS / 32];
    signed char zeros[HIDDEN * PIXELS / 32];
    size_t weight_bytes, scale_bytes, zero_bytes;
} packed;

static int groups_of(const format *how, int inputs) {
    return how->group && how->group < inputs ? inputs / how->group : 1;
}

static void pack(const format *how, const float *weights, int outputs, int inputs, packed *to) {
    const size_t elements = (size_t)outputs * (size_t)inputs,
                 groups = how->scale ? (size_t)outputs * (size_t)groups_of(how, inputs) : 0;
    const int is_of_4_bits =
        how->dtype == GEMMEPI_I4 || how->dtype == GEMMEPI_U4 || how->dtype == GEMMEPI_E2M1;
    gemmepi_pack_desc desc = {.rows = outputs, .columns = inputs, .source = weights, .packed = to->weights};
    desc.dtype = how->dtype;
    desc.block_rows = 1, desc.block_columns = how->group;
    desc.scale = groups ? to->scales : NULL, desc.scale_dtype = how->scale;
    desc.zero = how->has_zero ? to->zeros : NULL, desc.zero_dtype = GEMMEPI_I8;
    desc.find = groups > 0;
    check(gemmepi_pack(&desc));
    to->weight_bytes = elements * gemmepi_dtype_size(how->dtype) / (is_of_4_bits ? 2 : 1);
    to->scale_bytes = groups * gemmepi_dtype_size(how->scale);
    to->zero_bytes = how->has_zero ? groups : 0;
}

/* d = act(x w^T + bias), w made by the formula of what is packed. All on the device but the host's packed weights. */
static void multiply(const format *how, const packed *weights, int rows, int outputs, int inputs,
                     const void *x, const void *bias, int is_last, void *d) {
    gemmepi_operand operands[2] = {{.name = "scale", .dtype = how->scale},
                                   {.name = "zero", .dtype = GEMMEPI_I8}};
    gemmepi_matmul_desc desc = {.m = rows, .n = outputs, .k = inputs};
    gemmepi_matmul_args args = {.a = x, .bias = bias, .d = d};
    void *b = NULL, *pointers[2] = {NULL, NULL};
    desc.a.dtype = GEMMEPI_F16, desc.d.dtype = is_last ? GEMMEPI_F32 : GEMMEPI_F16;
    desc.b.dtype = how->dtype, desc.b.transposed = 1, desc.b.formula = how->formula;
    desc.bias.dtype = GEMMEPI_F32;
    desc.epilogue = GEMMEPI_BIAS | (is_last ? GEMMEPI_NONE : GEMMEPI_RELU);
    for (int i = 0; i < 2; i++) { /* of op(B) [inputs, outputs] */
        operands[i].kind = GEMMEPI_BLOCKED;
        operands[i].block_rows = how->group, operands[i].block_columns = 1;
    }
    desc.operands = how->formula ? operands : NULL;
    desc.operand_count = !how->formula ? 0 : how->has_zero ? 2 : 1;
    check(gemmepi_alloc_from(context, weights->weights, weights->weight_bytes, &b));
    if (weights->scale_bytes)
        check(gemmepi_alloc_from(context, weights->scales, weights->scale_bytes, &pointers[0]));
    if (weights->zero_bytes)
        check(gemmepi_alloc_from(context, weights->zeros, weights->zero_bytes, &pointers[1]));
    args.b = b, args.operands = how->formula ? pointers : NULL;
    check(gemmepi_matmul(context, &desc, &args, NULL));
    check(gemmepi_free(context, b));
    for (int i = 0; i < 2; i++)
        check(gemmepi_free(context, pointers[i]));
}

/* ---- what they read ---- */

typedef struct result {
    double right; /* percent */
    size_t bytes;
    float logits[MOST_TESTS][CLASSES];
} result;

static void read_all(const digits *test, const parameters *learnt, const format *how, packed of[LAYERS],
                     result *to) {
    static float pixels[MOST_TESTS][PIXELS];
    static unsigned short halves[MOST_TESTS * PIXELS];
    gemmepi_pack_desc narrow = {.rows = test->count, .columns = PIXELS, .source = pixels, .packed = halves};
    void *x, *hidden, *logits, *b1, *b2;
    int right = 0;
    narrow.dtype = GEMMEPI_F16;
    for (int i = 0; i < test->count; i++)
        memcpy(pixels[i], test->all[i].pixels, sizeof pixels[i]);
    check(gemmepi_pack(&narrow));
    pack(how, learnt->w1, HIDDEN, PIXELS, &of[0]);
    pack(how, learnt->w2, CLASSES, HIDDEN, &of[1]);
    check(gemmepi_alloc_from(context, halves, sizeof halves, &x));
    check(gemmepi_alloc_from(context, learnt->b1, sizeof learnt->b1, &b1));
    check(gemmepi_alloc_from(context, learnt->b2, sizeof learnt->b2, &b2));
    check(gemmepi_alloc(context, (size_t)MOST_TESTS * HIDDEN * 2, &hidden));
    check(gemmepi_alloc(context, sizeof to->logits, &logits));
    multiply(how, &of[0], test->count, HIDDEN, PIXELS, x, b1, 0, hidden);
    multiply(how, &of[1], test->count, CLASSES, HIDDEN, hidden, b2, 1, logits);
    check(gemmepi_download(context, to->logits, logits, sizeof to->logits, NULL));
    check(gemmepi_free(context, x)), check(gemmepi_free(context, hidden)),
        check(gemmepi_free(context, logits));
    check(gemmepi_free(context, b1)), check(gemmepi_free(context, b2));
    to->bytes = 0;
    for (int i = 0; i < LAYERS; i++)
        to->bytes += of[i].weight_bytes + of[i].scale_bytes + of[i].zero_bytes;
    for (int i = 0; i < test->count; i++) {
        int best = 0;
        for (int j = 1; j < CLASSES; j++)
            best = to->logits[i][j] > to->logits[i][best] ? j : best;
        right += best == test->all[i].label;
    }
    to->right = 100.0 * right / test->count;
}

/* ---- the same by plain loops ---- */

static double half_to_double(const unsigned char *at) {
    const unsigned bits = at[0] | (unsigned)at[1] << 8, exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double size =
        exponent ? ldexp(1024.0 + mantissa, (int)exponent - 25) : ldexp((double)mantissa, -24);
    return bits >> 15 ? -size : size;
}

/* Weight [output, input] of what is packed: codes and scales decoded here. */
static double weight_at(const format *how, const packed *of, int output, int input, int inputs) {
    static const double e2m1[8] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    const int at = output * inputs + input,
              group = output * groups_of(how, inputs) + (how->group ? input / how->group : 0);
    const unsigned code = of->weights[at / 2] >> (at % 2 ? 4 : 0) & 15u;
    const double scale = how->scale == GEMMEPI_E8M0 ? ldexp(1.0, of->scales[group] - 127)
                         : how->scale               ? half_to_double(&of->scales[2 * group])
                                                    : 1;
    switch (how->dtype) {
    case GEMMEPI_U4:
        return ((double)code - of->zeros[group]) * scale;
    case GEMMEPI_I4:
        return (code < 8 ? (double)code : (double)code - 16) * scale;
    case GEMMEPI_E2M1:
        return (code < 8 ? e2m1[code] : -e2m1[code - 8]) * scale;
    case GEMMEPI_I8:
        return (double)(signed char)of->weights[at] * scale;
    default:
        return half_to_double(&of->weights[2 * at]);
    }
}

/* The largest difference of the first digits' logits. */
static double largest_difference(const digits *test, const parameters *learnt, const format *how,
                                 const packed of[LAYERS], const result *got) {
    double worst = 0;
    for (int i = 0; i < 20; i++) {
        double hidden[HIDDEN];
        for (int j = 0; j < HIDDEN; j++) {
            hidden[j] = (double)learnt->b1[j];
            for (int k = 0; k < PIXELS; k++)
                hidden[j] += (double)test->all[i].pixels[k] * weight_at(how, &of[0], j, k, PIXELS);
            hidden[j] = hidden[j] > 0 ? hidden[j] : 0;
        }
        for (int j = 0; j < CLASSES; j++) {
            double logit = (double)learnt->b2[j];
            for (int k = 0; k < HIDDEN; k++)
                logit += hidden[k] * weight_at(how, &of[1], j, k, HIDDEN);
            worst = fmax(worst, fabs(logit - (double)got->logits[i][j]));
        }
    }
    return worst;
}

/* ---- the picture ---- */

/* A bar of bytes for each format, with what it reads right. */
static void draw(const char *path, const result results[FORMATS]) {
    FILE *file = fopen(path, "w");
    if (!file)
        fail(path, "cannot be written");
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 720 %d\" font-family=\"sans-serif\" "
            "font-size=\"13\">\n<rect width=\"720\" height=\"%d\" fill=\"white\"/>\n",
            30 * FORMATS + 40, 30 * FORMATS + 40);
    for (int f = 0; f < FORMATS; f++) {
        const double width = 300 * (double)results[f].bytes / (double)results[0].bytes;
        const int y = 20 + 30 * f;
        fprintf(file, "<text x=\"240\" y=\"%d\" text-anchor=\"end\">%s</text>\n", y + 15, formats[f].name);
        fprintf(file, "<rect x=\"250\" y=\"%d\" width=\"%.1f\" height=\"20\" fill=\"%s\"/>\n", y, width,
                f ? "#4a8" : "#789");
        fprintf(file, "<text x=\"%.1f\" y=\"%d\">%.1f KB, %.2f %% right</text>\n", 258 + width, y + 15,
                (double)results[f].bytes / 1000, results[f].right);
    }
    fprintf(file, "<text x=\"250\" y=\"%d\">weights, scales and zeros</text>\n</svg>\n", 30 * FORMATS + 32);
    if (fclose(file))
        fail(path, "cannot be written");
    printf("drawn into %s\n", path);
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
    static parameters learnt;
    static packed of[LAYERS];
    static result results[FORMATS];
    gemmepi_config config = {.device = 0};
    gemmepi_context_details details;
    const char *data = "data/digits.csv", *svg = NULL;
    uint64_t random = 1;
    int epochs = 20;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--host"))
            config.device = GEMMEPI_DEVICE_HOST;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            random = (uint64_t)number(argv[++i]);
        else if (!strcmp(argv[i], "--epochs") && i + 1 < argc)
            epochs = number(argv[++i]);
        else if (!strcmp(argv[i], "--svg") && i + 1 < argc)
            svg = argv[++i];
        else if (argv[i][0] != '-')
            data = argv[i];
        else
            fail(argv[i], "known are --host, --seed N, --epochs N, --svg PATH and the path of digits.csv");
    }
    load_digits(data, &training, &test);
    check(gemmepi_create(&config, &context));
    check(gemmepi_context_info(context, &details));
    if (details.fallback_reason[0])
        fprintf(stderr, "no GPU is used: %s\n", details.fallback_reason);
    printf("device: %s\n", details.name);
    train(&training, &random, epochs, &learnt);
    printf("\n%-36s %8s %11s   right of %d digits that it has not seen\n", "weights", "bytes", "of 16 bits",
           test.count);
    for (int f = 0; f < FORMATS; f++) {
        read_all(&test, &learnt, &formats[f], of, &results[f]);
        printf("%-36s %8d %10.1f%%   %.2f %% ", formats[f].name, (int)results[f].bytes,
               100.0 * (double)results[f].bytes / (double)results[0].bytes, results[f].right);
        for (int bar = 0; bar < (int)results[f].bytes / 500; bar++)
            putchar('#');
        putchar('\n');
        const double off = largest_difference(&test, &learnt, &formats[f], of, &results[f]);
        if (!(off < 0.05)) /* a NaN too */
            fail(formats[f].name, "its logits are not those of plain loops");
    }
    printf("logits are those of plain loops\n");
    if (svg)
        draw(svg, results);
    gemmepi_destroy(context);
    return 0;
}
