/* A policy that learns to land: a network of 32 tanh twice over sees where its lander is, and chooses one of four engines. It is
   trained by policy gradient (PPO) from the games that it plays, 256 at a time. The network is a call forward and a call
   backward: gemmepi_network. The last column of its result is what it believes a game is still worth, against which what
   happens is judged.

   It prints how many landings succeed while it learns, then plays 256 games by the most probable engine, and draws one of them.
   (Schulman et al., Proximal Policy Optimization Algorithms, 2017; advantages as in their GAE, 2016.)

       policy [--host] [--seed N] [--updates N] [--watch] */
#define _POSIX_C_SOURCE 200112L /* nanosleep */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { GAMES = 256, STEPS = 32, ROWS = GAMES * STEPS, PASSES = 3 };
enum { SEEN = 6, WIDTH = 32, ENGINES = 4, RESULTS = ENGINES + 1, LAYERS = 3 };

static gemmepi_context *context;
static uint64_t random_state = 1;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "policy: %s: %s\n", what, why);
    exit(1);
}

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK)
        fail(gemmepi_status_name(status), gemmepi_last_error());
}

/* From 0 to below 1, by splitmix64: a generator of our own, so that a seed means the same everywhere. */
static double uniform(void) {
    uint64_t z = random_state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0; /* 2^53 */
}

/* ---- the game ---- */

/* y is 0 on the ground; the pad is where x is `pad`. */
typedef struct lander {
    double x, y, vx, vy, pad;
    int age;
} lander;

enum { NONE, UP, LEFT, RIGHT }; /* where the engine pushes */
enum { FLIES, LANDED, CRASHED };

static lander new_lander(void) {
    lander l = {2 * uniform() - 1, 1, 0.6 * (2 * uniform() - 1), -0.3 * uniform(), 1.6 * uniform() - 0.8, 0};
    return l;
}

/* How far a lander is from being landed: away from the pad, or too fast. */
static double trouble(const lander *l) {
    const double too_fast = -l->vy - 0.2 - 0.6 * l->y;
    return fabs(l->x - l->pad) + 0.7 * l->y + 0.4 * fabs(l->vx) + (too_fast > 0 ? too_fast : 0);
}

/* A twentieth of a second. Returns the reward. */
static double play(lander *l, int engine, int *state) {
    const double time = 0.05, before = trouble(l);
    l->vx += time * (engine == LEFT ? -1 : engine == RIGHT ? 1 : 0);
    l->vy += time * ((engine == UP ? 1.5 : 0) - 0.6);
    l->x += time * l->vx, l->y += time * l->vy;
    *state = FLIES;
    if (l->y <= 0)
        *state = fabs(l->x - l->pad) < 0.12 && fabs(l->vx) < 0.2 && l->vy > -0.3 ? LANDED : CRASHED;
    else if (fabs(l->x) > 2 || l->y > 1.5 || ++l->age >= 200)
        *state = CRASHED;
    return *state == LANDED ? 1 : *state == CRASHED ? -1 : 2 * (before - trouble(l));
}

static void look(const lander *l, float *seen) {
    seen[0] = (float)(l->x - l->pad), seen[1] = (float)l->y, seen[2] = (float)l->vx, seen[3] = (float)l->vy;
    seen[4] = (float)l->x, seen[5] = 0.01f * (float)l->age;
}

/* ---- the network ---- */

static const gemmepi_network_layer layers[LAYERS] = {{.width = WIDTH, .formula = "d = tanh(v)"},
                                                     {.width = WIDTH, .formula = "d = tanh(v)"},
                                                     {.width = RESULTS}};

/* Weights, then biases of a layer, stored one after another for all: here, and gradients and Adam's means of them. */
enum {
    FIRST = (SEEN + 1) * WIDTH,
    SECOND = (WIDTH + 1) * WIDTH,
    THIRD = (WIDTH + 1) * RESULTS,
    WEIGHTS = FIRST + SECOND + THIRD
};
static const int inputs[LAYERS] = {SEEN, WIDTH, WIDTH}, begins[LAYERS] = {0, FIRST, FIRST + SECOND};
static float weights[WEIGHTS], gradients[WEIGHTS], means[WEIGHTS], squares[WEIGHTS];

/* Pointers are the device's. */
typedef struct network {
    gemmepi_plan *playing, *learning, *backward; /* rows of one step of all games, or of all steps */
    gemmepi_network_args args;
    const void *w[LAYERS], *bias[LAYERS];
    void *dw[LAYERS], *dbias[LAYERS];
    float *weights, *gradients, *x, *y, *dy;
} network;

static float *allocate(size_t count) {
    void *memory;
    check(gemmepi_alloc(context, count * sizeof(float), &memory));
    return memory;
}

static void make_network(network *net) {
    gemmepi_network_desc desc = {
        .rows = GAMES, .input = SEEN, .layers = layers, .layer_count = LAYERS, .flags = GEMMEPI_NETWORK_BIAS};
    net->weights = allocate(WEIGHTS), net->gradients = allocate(WEIGHTS);
    net->x = allocate(ROWS * SEEN), net->y = allocate(ROWS * RESULTS), net->dy = allocate(ROWS * RESULTS);
    check(gemmepi_plan_network(context, &desc, &net->playing));
    desc.rows = ROWS;
    check(gemmepi_plan_network(context, &desc, &net->learning));
    desc.flags |= GEMMEPI_NETWORK_DW;
    check(gemmepi_plan_network_backward(context, &desc, &net->backward));
    check(gemmepi_plan_prepare(net->playing, NULL));
    check(gemmepi_plan_prepare(net->learning, NULL));
    check(gemmepi_plan_prepare(net->backward, NULL));
    for (int i = 0; i < LAYERS; i++) {
        const int count = inputs[i] * (int)layers[i].width;
        net->w[i] = net->weights + begins[i], net->bias[i] = net->weights + begins[i] + count;
        net->dw[i] = net->gradients + begins[i], net->dbias[i] = net->gradients + begins[i] + count;
        for (int j = 0; j < count; j++) /* the last layer begins without a preference */
            weights[begins[i] + j] =
                (float)((2 * uniform() - 1) * sqrt(3.0 / inputs[i]) * (i + 1 < LAYERS ? 1 : 0.1));
    }
    check(gemmepi_upload(context, net->weights, weights, sizeof weights, NULL));
    net->args.x = net->x, net->args.y = net->y, net->args.dy = net->dy;
    net->args.w = net->w, net->args.bias = net->bias, net->args.dw = net->dw, net->args.dbias = net->dbias;
}

static void close_network(network *net) {
    float *memory[] = {net->weights, net->gradients, net->x, net->y, net->dy};
    gemmepi_plan_destroy(net->playing), gemmepi_plan_destroy(net->learning),
        gemmepi_plan_destroy(net->backward);
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        check(gemmepi_free(context, memory[i]));
}

static void upload(float *to, const float *from, size_t count) {
    check(gemmepi_upload(context, to, from, count * sizeof *from, NULL));
}

static void download(float *to, const float *from, size_t count) {
    check(gemmepi_download(context, to, from, count * sizeof *to, NULL));
}

/* y [rows, RESULTS] of x [rows, SEEN], by the plan for so many rows */
static void think(const network *net, const gemmepi_plan *plan, const float *x, float *y, size_t rows) {
    upload(net->x, x, rows * SEEN);
    check(gemmepi_run_network(plan, &net->args, NULL));
    download(y, net->y, rows * RESULTS);
}

/* Softmax of the first results. */
static void probabilities(const float *y, double *p) {
    double most = y[0], sum = 0;
    for (int i = 1; i < ENGINES; i++)
        most = y[i] > most ? y[i] : most;
    for (int i = 0; i < ENGINES; i++)
        sum += p[i] = exp(y[i] - most);
    for (int i = 0; i < ENGINES; i++)
        p[i] /= sum;
}

/* ---- learning ---- */

/* What happened in STEPS steps of all games, and what to make of it. */
static struct {
    float x[STEPS + 1][GAMES][SEEN], y[STEPS + 1][GAMES][RESULTS], now[STEPS][GAMES][RESULTS],
        dy[STEPS][GAMES][RESULTS];
    int engine[STEPS][GAMES], state[STEPS][GAMES];
    double reward[STEPS][GAMES], advantage[STEPS][GAMES], worth[STEPS][GAMES], probability[STEPS][GAMES];
} all;

static int choose(const double *p) {
    double left = uniform();
    int engine = 0;
    while (engine < ENGINES - 1 && (left -= p[engine]) >= 0)
        engine++;
    return engine;
}

/* Plays all games for STEPS steps. Games that end begin again. Returns how many ended, of which `landed` did so well. */
static int play_all(const network *net, lander *games, int *landed) {
    double p[ENGINES];
    int ended = 0;
    for (int s = 0; s <= STEPS; s++) {
        for (int i = 0; i < GAMES; i++)
            look(&games[i], all.x[s][i]);
        think(net, net->playing, all.x[s][0], all.y[s][0], GAMES);
        for (int i = 0; i < GAMES && s < STEPS; i++) {
            probabilities(all.y[s][i], p);
            const int engine = all.engine[s][i] = choose(p);
            all.probability[s][i] = p[engine];
            all.reward[s][i] = play(&games[i], engine, &all.state[s][i]);
            if (all.state[s][i] == FLIES)
                continue;
            ended++, *landed += all.state[s][i] == LANDED;
            games[i] = new_lander();
        }
    }
    return ended;
}

/* How much better each step went than was expected (GAE with 0.99 and 0.95), from the last to the first. */
static void judge(void) {
    double sum = 0, squares_sum = 0;
    for (int i = 0; i < GAMES; i++) {
        double ahead = 0;
        for (int s = STEPS - 1; s >= 0; s--) {
            const int goes_on = all.state[s][i] == FLIES;
            const double expected = all.y[s][i][ENGINES], next = goes_on ? all.y[s + 1][i][ENGINES] : 0;
            ahead = all.reward[s][i] + 0.99 * next - expected + (goes_on ? 0.99 * 0.95 * ahead : 0);
            all.advantage[s][i] = ahead, all.worth[s][i] = expected + ahead;
            sum += ahead, squares_sum += ahead * ahead;
        }
    }
    const double mean = sum / ROWS, deviation = sqrt(squares_sum / ROWS - mean * mean) + 1e-8;
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < GAMES; i++)
            all.advantage[s][i] = (all.advantage[s][i] - mean) / deviation;
}

/* The gradient of a step's loss by the network's results. The loss is PPO's, with 0.01 of the entropy for curiosity, and half the square of what was
   wrong about the worth. */
static void differentiate(int s, int i) {
    const float *y = all.now[s][i];
    const int engine = all.engine[s][i];
    double p[ENGINES], entropy = 0;
    probabilities(y, p);
    const double advantage = all.advantage[s][i], ratio = p[engine] / all.probability[s][i];
    const int is_clipped = advantage > 0 ? ratio > 1.2 : ratio < 0.8;
    const double weight = is_clipped ? 0 : advantage * ratio;
    for (int a = 0; a < ENGINES; a++)
        entropy -= p[a] * log(p[a] + 1e-12);
    for (int a = 0; a < ENGINES; a++) {
        const double curious = 0.01 * p[a] * (log(p[a] + 1e-12) + entropy);
        all.dy[s][i][a] = (float)((weight * (p[a] - (a == engine)) + curious) / ROWS);
    }
    all.dy[s][i][ENGINES] = (float)((y[ENGINES] - all.worth[s][i]) / ROWS);
}

static void adam(double rate, int step) {
    const double scale = rate * sqrt(1 - pow(0.999, step)) / (1 - pow(0.9, step));
    for (int i = 0; i < WEIGHTS; i++) {
        means[i] += 0.1f * (gradients[i] - means[i]);
        squares[i] += 0.001f * (gradients[i] * gradients[i] - squares[i]);
        weights[i] -= (float)(scale * means[i] / (sqrt(squares[i]) + 1e-8));
    }
}

/* A pass over what happened: forward, backward, and a step of Adam. */
static void learn(const network *net, double rate, int step) {
    think(net, net->learning, all.x[0][0], all.now[0][0], ROWS);
    for (int s = 0; s < STEPS; s++)
        for (int i = 0; i < GAMES; i++)
            differentiate(s, i);
    upload(net->dy, all.dy[0][0], ROWS * RESULTS);
    check(gemmepi_run_network_backward(net->backward, &net->args, NULL));
    download(gradients, net->gradients, WEIGHTS);
    adam(rate, step);
    upload(net->weights, weights, WEIGHTS);
}

static void train(const network *net, int updates) {
    static lander games[GAMES];
    int ended = 0, landed = 0;
    for (int i = 0; i < GAMES; i++)
        games[i] = new_lander();
    for (int update = 0; update < updates; update++) {
        ended += play_all(net, games, &landed);
        judge();
        for (int pass = 0; pass < PASSES; pass++)
            learn(net, 6e-3 * (1 - (double)update / updates), update * PASSES + pass + 1);
        if ((update + 1) % 10)
            continue;
        printf("%4d updates: %3.0f %% of %d landings\n", update + 1, 100.0 * landed / (ended ? ended : 1),
               ended);
        fflush(stdout);
        ended = landed = 0;
    }
}

/* ---- to be looked at ---- */

enum { COLUMNS = 64, LINES = 20 };

/* Puts a character where a lander is, if that is within the picture: x from -1.5 to 1.5, y from 0 to 1.25. */
static void mark(char (*picture)[COLUMNS + 1], const lander *l, char c) {
    const int column = (int)((l->x + 1.5) / 3 * COLUMNS), line = LINES - 2 - (int)(l->y / 1.25 * (LINES - 1));
    if (column >= 0 && column < COLUMNS && line >= 0 && line < LINES - 1)
        picture[line][column] = c;
}

static void start_picture(char (*picture)[COLUMNS + 1], const lander *l) {
    for (int i = 0; i < LINES; i++) {
        memset(picture[i], i == LINES - 1 ? '-' : ' ', COLUMNS);
        picture[i][COLUMNS] = 0;
    }
    for (int i = -2; i <= 2; i++)
        picture[LINES - 1][(int)((l->pad + 1.5) / 3 * COLUMNS) + i] = '#';
}

static void show(char (*picture)[COLUMNS + 1], int is_moving) {
    for (int i = 0; i < LINES; i++)
        printf("%s\n", picture[i]);
    if (!is_moving)
        return;
    printf("\033[%dA", LINES); /* up again */
    fflush(stdout);
#ifndef _WIN32
    const struct timespec pause = {0, 50000000};
    nanosleep(&pause, NULL);
#endif
}

/* Plays a game of each lander by the most probable engine. Returns how many landed. The first game is drawn: where the lander was, and what its
   engine pushed against; with `watches` while it flies. */
static int test(const network *net, int watches) {
    static lander games[GAMES];
    static int state[GAMES];
    static float x[GAMES][SEEN], y[GAMES][RESULTS];
    char picture[LINES][COLUMNS + 1];
    int flying = GAMES, landed = 0;
    for (int i = 0; i < GAMES; i++)
        games[i] = new_lander();
    start_picture(picture, &games[0]);
    while (flying) {
        flying = 0;
        for (int i = 0; i < GAMES; i++)
            look(&games[i], x[i]);
        think(net, net->playing, x[0], y[0], GAMES);
        for (int i = 0; i < GAMES; i++) {
            int engine = 0;
            if (state[i] != FLIES)
                continue;
            for (int a = 1; a < ENGINES; a++)
                engine = y[i][a] > y[i][engine] ? a : engine;
            if (i == 0)
                mark(picture, &games[i], ".^<>"[engine]);
            play(&games[i], engine, &state[i]);
            landed += state[i] == LANDED, flying += state[i] == FLIES;
        }
        if (watches && state[0] == FLIES)
            show(picture, 1);
    }
    show(picture, 0);
    return landed;
}

/* ---- the program ---- */

typedef struct options {
    int device, seed, updates, watches;
} options;

static const char usage[] = "policy [--host] [--seed N] [--updates N] [--watch]\n"
                            "  learns to land, and draws how it does\n"
                            "  --host       not on the GPU\n"
                            "  --seed N     other games and weights (1)\n"
                            "  --updates N  how long it learns (50)\n"
                            "  --watch      draws while it flies\n";

static int number(const char *text) {
    char *end;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 100000)
        fail(text, "a number from 1 to 100000 is needed here");
    return (int)value;
}

static options read_options(int argc, char **argv) {
    options o = {0, 1, 50, 0};
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--host"))
            o.device = GEMMEPI_DEVICE_HOST;
        else if (!strcmp(argv[i], "--watch"))
            o.watches = 1;
        else if (!strcmp(argv[i], "--seed") && i + 1 < argc)
            o.seed = number(argv[++i]);
        else if (!strcmp(argv[i], "--updates") && i + 1 < argc)
            o.updates = number(argv[++i]);
        else if (!strcmp(argv[i], "--help"))
            fputs(usage, stdout), exit(0);
        else
            fail(argv[i], "known are --host, --seed N, --updates N, --watch and --help");
    }
    return o;
}

static void open_context(int device) {
    const gemmepi_config config = {.device = device};
    gemmepi_context_details details;
    check(gemmepi_create(&config, &context));
    check(gemmepi_context_info(context, &details));
    if (details.fallback_reason[0])
        printf("no GPU is used: %s\n", details.fallback_reason);
    printf("runs on: %s\n", details.name);
}

int main(int argc, char **argv) {
    const options o = read_options(argc, argv);
    static network net;
    random_state = (uint64_t)o.seed;
    open_context(o.device);
    make_network(&net);
    train(&net, o.updates);
    const int landed = test(&net, o.watches);
    printf("landed %.1f %% of %d games, each time with the most probable engine\n", 100.0 * landed / GAMES,
           GAMES);
    close_network(&net);
    gemmepi_destroy(context);
    return 0;
}
