/* Learns to read handwritten digits with a mixture of experts: a router gives each digit to two of eight small networks, and adds what they say,
   each times its share. Which expert has how many digits changes with every batch; the grouped products read that on the device, so
   that each is planned once. Rows of digits are gathered by their experts, results scattered back, and gradients go the same way.

       moe [--host] [--seed N] [--epochs N] [PATH] */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* INPUTS: the pixels, a one in place of biases, and zeros that make rows multiples of 16 bytes */
enum {
    PIXELS = 64,
    INPUTS = 68,
    INNER = 32,
    CLASSES = 10,
    EXPERTS = 8,
    TOP = 2,
    BATCH = 64,
    PLACES = BATCH * TOP,
    MOST_DIGITS = 2000
};

static gemmepi_context *context;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "moe: %s: %s\n", what, why);
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
    float inputs[INPUTS];
    int label, answer; /* what it is, and what the network read it as */
} digit;

typedef struct digits {
    digit all[MOST_DIGITS];
    int count;
} digits;

static int read_digit(FILE *file, digit *to) {
    int value = 0, numbers = 0;
    for (; numbers <= PIXELS && fscanf(file, "%2d,", &value) == 1; numbers++)
        if (numbers < PIXELS)
            to->inputs[numbers] = (float)value / 16;
    to->inputs[PIXELS] = 1;
    to->label = value;
    return numbers > PIXELS && value >= 0 && value < CLASSES;
}

/* Every fourth digit is for testing. */
static void load_digits(const char *path, digits *training, digits *test) {
    FILE *file = fopen(path, "r");
    digit next = {{0}, 0, 0};
    if (!file)
        fail(path, "cannot be read; give the path of digits.csv");
    for (int line = 0; read_digit(file, &next); line++) {
        digits *set = line % 4 == 3 ? test : training;
        if (set->count == MOST_DIGITS)
            fail(path, "has more digits than there is room for");
        set->all[set->count++] = next;
    }
    if (!feof(file) || test->count == 0)
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

/* A batch's routes, as grouped products read them. A digit has TOP slots, t TOP + j; a place is one among those of its expert. */
typedef struct routes {
    int32_t ends[EXPERTS], digit_of[PLACES], slot_of[PLACES]; /* the last two by place */
    float shares[BATCH][TOP];
} routes;

/* What is on the device, in one allocation. The sizes keep all members aligned to 16 bytes. */
typedef struct tensors {
    float router[INPUTS][EXPERTS], w1[EXPERTS][INPUTS][INNER], w2[EXPERTS][INNER][CLASSES];
    float x[BATCH][INPUTS], scores[BATCH][EXPERTS], dscores[BATCH][EXPERTS];
    float p[PLACES][INNER], h[PLACES][INNER], dh[PLACES][INNER]; /* by place */
    float y[BATCH][TOP][CLASSES], dy[BATCH][TOP][CLASSES];       /* by slot */
    routes routes;
} tensors;

enum { INNER_LAYER, OUTER_LAYER, INNER_GRADIENT, W2_UPDATE, W1_UPDATE, GROUPED };

typedef struct network {
    tensors *on; /* the device */
    gemmepi_plan *score, *update_router, *plans[GROUPED];
    gemmepi_matmul_args score_args, update_args;
    gemmepi_grouped_args args[GROUPED];
} network;

static const gemmepi_matrix transposed = {.transposed = 1};

/* Gradients are those of the loss times minus the learning rate, so that adding them is the descent. */
static void plan_network(network *net) {
    tensors *on = net->on;
    const int32_t *ends = on->routes.ends, *digit_of = on->routes.digit_of, *slot_of = on->routes.slot_of;
    const gemmepi_matmul_desc score = {.m = BATCH, .n = EXPERTS, .k = INPUTS};
    const gemmepi_matmul_desc update = {INPUTS, EXPERTS, BATCH, .a = transposed, .flags = GEMMEPI_ACCUMULATE};
    const gemmepi_grouped_desc descs[GROUPED] = {
        /* h = silu(p = x[digit] w1) */
        {{PLACES, INNER, INPUTS, .epilogue = GEMMEPI_SILU | GEMMEPI_AUX}, EXPERTS, .gather_a = BATCH},
        /* y[slot] = share h w2 */
        {{.m = PLACES, .n = CLASSES, .k = INNER}, EXPERTS, .scatter_d = PLACES, .weighted = 1},
        /* dh = (dy[slot] w2^T) silu'(p) */
        {{PLACES, INNER, CLASSES, .b = transposed, .epilogue = GEMMEPI_SILU | GEMMEPI_BACKWARD},
         EXPERTS,
         .gather_a = PLACES},
        /* w2 += h^T dy[slot], w1 += x[digit]^T dh */
        {{INNER, CLASSES, PLACES, .a = transposed, .flags = GEMMEPI_ACCUMULATE},
         EXPERTS,
         GEMMEPI_GROUPS_OF_K,
         .gather_b = PLACES},
        {{INPUTS, INNER, PLACES, .a = transposed, .flags = GEMMEPI_ACCUMULATE},
         EXPERTS,
         GEMMEPI_GROUPS_OF_K,
         .gather_a = BATCH},
    };
    const gemmepi_grouped_args args[GROUPED] = {
        {{.a = on->x, .b = on->w1, .aux = on->p, .d = on->h}, ends, .index_a = digit_of},
        {{.a = on->h, .b = on->w2, .d = on->y}, ends, .index_d = slot_of, .weights = on->routes.shares[0]},
        {{.a = on->dy, .b = on->w2, .aux = on->p, .d = on->dh}, ends, .index_a = slot_of},
        {{.a = on->h, .b = on->dy, .d = on->w2}, ends, .index_b = slot_of},
        {{.a = on->x, .b = on->dh, .d = on->w1}, ends, .index_a = digit_of},
    };
    net->score_args = (gemmepi_matmul_args){.a = on->x, .b = on->router, .d = on->scores};
    net->update_args = (gemmepi_matmul_args){.a = on->x, .b = on->dscores, .d = on->router};
    check(gemmepi_plan_matmul(context, &score, &net->score));
    check(gemmepi_plan_prepare(net->score, NULL));
    check(gemmepi_plan_matmul(context, &update, &net->update_router));
    check(gemmepi_plan_prepare(net->update_router, NULL));
    for (int i = 0; i < GROUPED; i++) {
        net->args[i] = args[i];
        check(gemmepi_plan_grouped(context, &descs[i], &net->plans[i]));
        check(gemmepi_plan_prepare(net->plans[i], NULL));
    }
}

/* Uniform numbers of a variance. */
static void draw(float *to, int count, double variance, uint64_t *random) {
    for (int i = 0; i < count; i++)
        to[i] = (float)((2 * uniform(random) - 1) * sqrt(3 * variance));
}

/* Weights have the variance 2 / inputs (He et al., 2015), the router's a hundredth of that. */
static void initialise(const network *net, uint64_t *random) {
    tensors *start = calloc(1, sizeof *start);
    if (!start)
        fail("memory", "exhausted");
    draw((float *)start->router, INPUTS * EXPERTS, .02 / INPUTS, random);
    draw((float *)start->w1, EXPERTS * INPUTS * INNER, 2.0 / INPUTS, random);
    draw((float *)start->w2, EXPERTS * INNER * CLASSES, 2.0 / INNER, random);
    check(gemmepi_upload(context, net->on, start, sizeof *start, NULL));
    free(start);
}

/* ---- routing, on the host ---- */

typedef struct load {
    int digits[EXPERTS][CLASSES]; /* which experts have had which digits */
} load;

/* The TOP experts of each digit, in `chosen`, their shares by softmax, and places by expert. */
static void route(float scores[BATCH][EXPERTS], int count, int chosen[BATCH][TOP], routes *to) {
    int place = 0;
    memset(to, 0, sizeof *to);
    for (int t = 0; t < count; t++) {
        const float *s = scores[t];
        int first = 0, second;
        for (int e = 1; e < EXPERTS; e++)
            first = s[e] > s[first] ? e : first;
        second = first == 0;
        for (int e = 0; e < EXPERTS; e++)
            second = e != first && s[e] > s[second] ? e : second;
        chosen[t][0] = first, chosen[t][1] = second;
        to->shares[t][0] = (float)(1 / (1 + exp(s[second] - s[first])));
        to->shares[t][1] = 1 - to->shares[t][0];
    }
    for (int e = 0; e < EXPERTS; to->ends[e++] = place)
        for (int slot = 0; slot < count * TOP; slot++)
            if (chosen[slot / TOP][slot % TOP] == e) {
                to->digit_of[place] = slot / TOP;
                to->slot_of[place++] = slot;
            }
}

/* ---- training ---- */

/* The cross entropy of a digit, whose logits are the sum of its slots, and scale times its gradient. */
static double softmax(float y[TOP][CLASSES], digit *of, double scale, double gradient[CLASSES]) {
    double logits[CLASSES], sum = 0;
    of->answer = 0;
    for (int i = 0; i < CLASSES; i++) {
        logits[i] = y[0][i] + y[1][i];
        of->answer = logits[i] > logits[of->answer] ? i : of->answer;
    }
    const double largest = logits[of->answer], right = logits[of->label];
    for (int i = 0; i < CLASSES; i++)
        sum += gradient[i] = exp(logits[i] - largest);
    for (int i = 0; i < CLASSES; i++)
        gradient[i] = scale * (gradient[i] / sum - (i == of->label));
    return log(sum) + largest - right;
}

/* What moves the scores of a digit's experts: what each says, y / share, along the gradient. */
static void share_gradient(float y[TOP][CLASSES], const float shares[TOP], const double gradient[CLASSES],
                           const int chosen[TOP], float dscores[EXPERTS]) {
    double along[TOP] = {0}, mean = 0;
    for (int j = 0; j < TOP; j++) {
        for (int i = 0; i < CLASSES; i++)
            along[j] += gradient[i] * y[j][i] / fmax(shares[j], 1e-6);
        mean += shares[j] * along[j];
    }
    for (int j = 0; j < TOP; j++)
        dscores[chosen[j]] += (float)(shares[j] * (along[j] - mean));
}

/* Towards equal loads (Shazeer et al., 2017; the loss of Fedus et al., 2021): experts that have more than their part are chosen less. */
static void balance(float scores[BATCH][EXPERTS], int count, const routes *at, double scale,
                    float dscores[BATCH][EXPERTS]) {
    for (int t = 0; t < count; t++) {
        double power[EXPERTS], sum = 0, mean = 0, excess[EXPERTS];
        for (int e = 0; e < EXPERTS; e++) {
            excess[e] = (double)EXPERTS * (at->ends[e] - (e ? at->ends[e - 1] : 0)) / (count * TOP);
            sum += power[e] = exp(scores[t][e]);
        }
        for (int e = 0; e < EXPERTS; e++)
            mean += power[e] / sum * excess[e];
        for (int e = 0; e < EXPERTS; e++)
            dscores[t][e] += (float)(scale * power[e] / sum * (excess[e] - mean));
    }
}

static void run(const network *net, int which) {
    check(gemmepi_run_grouped(net->plans[which], &net->args[which], NULL));
}

#define SEND(to, from)  check(gemmepi_upload(context, to, from, sizeof(from), NULL))
#define BRING(to, from) check(gemmepi_download(context, to, from, sizeof(to), NULL))

/* Reads a batch, and learns from it unless rate is 0. Returns the sum of its losses. */
static double read_batch(const network *net, digit *batch, int count, double rate, load *loads) {
    tensors *on = net->on;
    static float x[BATCH][INPUTS], scores[BATCH][EXPERTS], y[BATCH][TOP][CLASSES], dy[BATCH][TOP][CLASSES],
        dscores[BATCH][EXPERTS];
    static routes to[1];
    int chosen[BATCH][TOP];
    double loss = 0, gradient[CLASSES];
    memset(x, 0, sizeof x), memset(dy, 0, sizeof dy), memset(dscores, 0, sizeof dscores);
    for (int t = 0; t < count; t++)
        memcpy(x[t], batch[t].inputs, sizeof x[t]);
    SEND(on->x, x);
    check(gemmepi_run_matmul(net->score, &net->score_args, NULL));
    BRING(scores, on->scores);
    route(scores, count, chosen, to);
    SEND(&on->routes, to);
    run(net, INNER_LAYER);
    run(net, OUTER_LAYER);
    BRING(y, on->y);
    for (int t = 0; t < count; t++) {
        loss += softmax(y[t], &batch[t], -rate / BATCH, gradient);
        share_gradient(y[t], to->shares[t], gradient, chosen[t], dscores[t]);
        for (int i = 0; i < TOP * CLASSES; i++)
            dy[t][i / CLASSES][i % CLASSES] = (float)(to->shares[t][i / CLASSES] * gradient[i % CLASSES]);
        for (int j = 0; j < TOP; j++)
            loads->digits[chosen[t][j]][batch[t].label]++;
    }
    if (rate == 0)
        return loss;
    balance(scores, count, to, -rate * .3 / BATCH, dscores);
    SEND(on->dy, dy);
    SEND(on->dscores, dscores);
    run(net, INNER_GRADIENT); /* reads w2, so it comes before its update */
    run(net, W2_UPDATE);
    run(net, W1_UPDATE);
    check(gemmepi_run_matmul(net->update_router, &net->update_args, NULL));
    return loss;
}

static double read_all(const network *net, digits *set, double rate, load *loads) {
    double loss = 0;
    memset(loads, 0, sizeof *loads);
    for (int first = 0; first < set->count; first += BATCH)
        loss += read_batch(net, set->all + first, set->count - first < BATCH ? set->count - first : BATCH,
                           rate, loads);
    return loss / set->count;
}

/* ---- what came of it ---- */

/* Of each expert its part of all slots as a bar, and the digits that it has most. */
static void show_loads(const load *loads, int count) {
    puts("\nexpert  load");
    for (int e = 0; e < EXPERTS; e++) {
        int sum = 0;
        for (int i = 0; i < CLASSES; i++)
            sum += loads->digits[e][i];
        const double part = (double)sum / (count * TOP);
        printf("%5d   %5.1f %% %-40.*s", e, 100 * part,
               (int)(part * 100 + .5) > 40 ? 40 : (int)(part * 100 + .5),
               "########################################");
        for (int i = 0; i < CLASSES; i++)
            if (loads->digits[e][i] * 5 > sum)
                printf(" %d", i);
        putchar('\n');
    }
}

int main(int argc, char **argv) {
    static digits training, test;
    gemmepi_config config = {0};
    gemmepi_context_details details;
    network net = {0};
    load loads;
    void *memory;
    const char *path = "data/digits.csv";
    int epochs = 40, right = 0;
    uint64_t random = 1;
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--host") == 0)
            config.device = GEMMEPI_DEVICE_HOST;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            random = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--epochs") == 0 && i + 1 < argc)
            epochs = atoi(argv[++i]);
        else if (argv[i][0] == '-')
            fail(argv[i], "is no option: moe [--host] [--seed N] [--epochs N] [PATH]");
        else
            path = argv[i];
    load_digits(path, &training, &test);
    check(gemmepi_create(&config, &context));
    check(gemmepi_context_info(context, &details));
    printf("device: %s\n", details.name);
    if (details.fallback_reason[0])
        fprintf(stderr, "no GPU is used: %s\n", details.fallback_reason);
    check(gemmepi_alloc(context, sizeof(tensors), &memory));
    net.on = memory;
    plan_network(&net);
    initialise(&net, &random);
    for (int i = 0; i < epochs; i++) {
        shuffle(&training, &random);
        const double loss = read_all(&net, &training, 1.0 * (epochs - i) / epochs, &loads);
        if (!(loss < 1e3)) /* a NaN too */
            fail("training", "the loss grows without bound");
        if ((i + 1) % ((epochs + 7) / 8) == 0 || i + 1 == epochs)
            printf("epoch %2d of %d, training loss %.4f\n", i + 1, epochs, loss);
    }
    read_all(&net, &test, 0, &loads);
    for (int i = 0; i < test.count; i++)
        right += test.all[i].answer == test.all[i].label;
    printf("accuracy %.2f %% (%d of %d)\n", 100.0 * right / test.count, right, test.count);
    show_loads(&loads, test.count);
    for (int i = 0; i < GROUPED; i++)
        gemmepi_plan_destroy(net.plans[i]);
    gemmepi_plan_destroy(net.score);
    gemmepi_plan_destroy(net.update_router);
    check(gemmepi_free(context, memory));
    gemmepi_destroy(context);
    return 0;
}
