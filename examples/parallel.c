/* One network on several GPUs: y = swiglu(x W1 + b1) W2 + b2, forward, backward and update. Each of G ranks has a share of
   W1's columns and of W2's rows, so that each multiplies x by its share, and y is the sum over the ranks. So is dx in backward.
   A thread and a gemmepi context for each GPU; ranks.h has what is not gemmepi's.

       parallel            learns handwritten digits with 1 to G GPUs, after its gradients were held against slopes of the loss
       parallel --bench    steps of random data at the sizes of Llama-3-8B: how much faster G GPUs are, and what overlap gives

   Options: --gpus G (all there are), --overlap or --no-overlap (sums at the same time as products or not; neither: by OVERLAP_FROM),
   --last N (4: one in so many rows is a block of its own, during whose products the others' sums run),
   --ctas N (8: multiprocessors for sums that run with products; 0: products use all, and sums what NCCL likes),
   --nccl PATH, --host (contexts of the host instead of GPUs, and plain sums), --seed N, --epochs N, --data PATH, --svg PATH;
   with --bench --tokens N, --width N, --hidden N, --steps N (10, of each of five rounds).
   Ranks as processes, on one host or many: --rank R --ranks N --id FILE [--device I]; FILE is new for each run, and all see it.
   A rank that makes no progress for --timeout S seconds (60) ends the program. --fail R and --stall R let rank R fail or stop in its
   third pass forward, to see that.
   --host with --nccl sums by a library that accepts the host's memory, such as tests/fake_nccl.c; NVIDIA's accepts only that of GPUs. */
#define _POSIX_C_SOURCE 200809L
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include "ranks.h"
#include "parallel_report.h"
#include <math.h>

/* Overlap divides the rows, needs more launches, and leaves multiprocessors to sums. It is the default where a sum has so many bytes.
   On two H100 or H200 64 MiB, of Llama-3-8B's sizes, gain a few percent; on two H200 16 MiB lose 4 to 13; with the 8 KiB of the digits a
   step takes twice as long. */
enum { OVERLAP_FROM = 32 << 20 };

enum { PIXELS = 64, HIDDEN = 96, CLASSES = 10, BATCH = 32, MOST_DIGITS = 2000, MOST_RANKS = 1024 };

static void die(const char *what, const char *why) {
    fprintf(stderr, "parallel: %s: %s\n", what, why);
    fflush(NULL);
    _exit(1); /* not exit: other ranks may be at work on their GPUs */
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory)
        die("memory", "exhausted");
    return memory;
}

/* From 0 to below 1, by splitmix64: a generator of our own, so that a seed means the same everywhere. */
static double uniform(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0; /* 2^53 */
}

/* A NaN is the largest. */
static double larger(double a, double b) {
    return a >= b || a != a ? a : b;
}

/* ---- the job, which all ranks read ---- */

typedef struct options {
    int gpus, is_host, is_bench, last, ctas, seed, epochs, steps, tokens, width, hidden;
    int overlaps; /* -1: not said */
    int rank, ranks, device, timeout, fails, stalls;
    const char *nccl, *id, *data, *svg;
} options;

typedef struct digit {
    float pixels[PIXELS]; /* 0 to 1 */
    int label;
} digit;

typedef struct digits {
    digit all[MOST_DIGITS];
    int count;
} digits;

typedef struct task {
    const options *options;
    int64_t rows, width, hidden, out; /* of the whole network */
    gemmepi_dtype dtype;
    const char *unit; /* what a rank is, in words */
    digits training, test;
    float w1[PIXELS][2 * HIDDEN], w2[HIDDEN][CLASSES]; /* to begin with, for the digits */
    double slope_error[MOST_RANKS];                    /* by rank */
    /* What rank 0 finds out, by the number of ranks. */
    timing times[MOST_RANKS + 1];
    double *loss[MOST_RANKS + 1]; /* of the training digits, by epoch */
    int right[MOST_RANKS + 1];    /* of the test digits */
    void *y, *dx;                 /* of one rank, in the bench */
} task;

/* Where rank 0 leaves what it finds out. */
static task *job_of(const rank *me) {
    return me->all->job;
}

static const char *plural(int count) {
    return count == 1 ? "" : "s";
}

/* A bar on a terminal, ten lines elsewhere. */
static void show_progress(const rank *me, const char *what, int done, int count, const char *more) {
    const char *bar = "####################";
    const int filled = done * 20 / count, is_bar_shown = isatty(1);
    if (me->number > 0 || (!is_bar_shown && done < count && done % ((count + 9) / 10)))
        return;
    if (is_bar_shown)
        printf("\r[%.*s%*s] ", filled, bar, 20 - filled, "");
    printf("%d %s%s, %s %d of %d%s", me->all->count, job_of(me)->unit, plural(me->all->count), what, done,
           count, more);
    if (!is_bar_shown || done == count)
        putchar('\n');
    fflush(stdout);
}

/* ---- one rank's share of the network ---- */

/* Gradients G.. are stored the same distance after what they are of. */
enum { W1, B1, W2, B2, GW1, GB1, GW2, GB2, X, PRE, ACT, Y, DY, DPRE, DX, TENSORS };
enum { FORWARD1, FORWARD2, BACKWARD2, BACKWARD1, UPDATE2, UPDATE1, PRODUCTS };
/* Of all rows at once; of the first block; of the last, and of all rows behind it, while a sum runs. */
enum { WHOLE, FIRST_BLOCK, BESIDE_SUMS, PLANS };

typedef struct network {
    rank *me;
    const task *job;
    int64_t hidden; /* this rank's, of the job's */
    int64_t line[TENSORS], lines[TENSORS];
    void *at[TENSORS];
    gemmepi_plan *plans[PLANS][PRODUCTS];
    int overlaps, blocks;
    int learns;   /* products of gradients add to weights and biases, and not to GW1 and so on */
    int is_alone; /* no sums: the dry run */
    int passes;   /* forward */
} network;

/* The first gate of a rank's share, of the last and of the first one the job's. Shares are as equal as they can be in units of eight gates,
   with which lines begin at multiples of 16 bytes; of fewer where the job's gates are none of eights, or too few. */
static int64_t first_gate(const task *job, int which, int ranks) {
    int64_t unit = 8;
    while (unit > 1 && (job->hidden % unit || job->hidden / unit < ranks))
        unit /= 2;
    return job->hidden / unit * which / ranks * unit;
}

static int64_t count_of(const network *net, int tensor) {
    return net->line[tensor] * net->lines[tensor];
}

/* The last of two blocks is small, because nothing runs during its sums of y. The first block's sums run during the last's products. */
static int64_t rows_of(const network *net, int block) {
    const int64_t rows = net->job->rows, last = rows / net->job->options->last;
    return net->blocks == 1 ? rows : block ? last : rows - last;
}

/* Where the lines of a block of rows begin; NULL where this rank has no such tensor. */
static void *block_of(const network *net, int tensor, int block) {
    const int64_t first = block ? rows_of(net, 0) : 0;
    char *start = net->at[tensor];
    return start ? start + (size_t)(first * net->line[tensor]) * gemmepi_dtype_size(net->job->dtype) : NULL;
}

static void allocate_tensors(network *net) {
    const int64_t rows = net->job->rows, width = net->job->width, out = net->job->out, hidden = net->hidden;
    const int64_t shapes[TENSORS][2] = {
        [W1] = {width, 2 * hidden}, [B1] = {1, 2 * hidden},      [W2] = {hidden, out},   [B2] = {1, out},
        [X] = {rows, width},        [PRE] = {rows, 2 * hidden},  [ACT] = {rows, hidden}, [Y] = {rows, out},
        [DY] = {rows, out},         [DPRE] = {rows, 2 * hidden}, [DX] = {rows, width},
    };
    for (int i = 0; i < TENSORS; i++) {
        const int is_gradient = i >= GW1 && i <= GB2, of = is_gradient ? i - GW1 : i;
        const int is_bias = of == B1 || of == B2;
        net->lines[i] = shapes[of][0], net->line[i] = shapes[of][1];
        if (net->job->options->is_bench ? is_bias || is_gradient : of == B2 && net->me->number > 0)
            net->lines[i] = 0; /* Llama has no biases; b2 is added once, by rank 0 */
        const size_t bytes = (size_t)count_of(net, i) * gemmepi_dtype_size(net->job->dtype);
        check(net->me, gemmepi_alloc(net->me->context, bytes, &net->at[i]));
    }
}

/* Bytes that all lines with which a block begins are multiples of, 16 at most. */
static size_t alignment_of(const network *net, int block) {
    size_t all = 16;
    for (int i = X; i < TENSORS && block; i++)
        all |= (size_t)(rows_of(net, 0) * net->line[i]) * gemmepi_dtype_size(net->job->dtype);
    return all & (~all + 1);
}

static void describe(const network *net, int block, gemmepi_matmul_desc descs[PRODUCTS]) {
    const gemmepi_dtype dtype = net->job->dtype;
    const int64_t all = net->job->rows, rows = rows_of(net, block);
    const int64_t width = net->job->width, out = net->job->out, hidden = net->hidden;
    const gemmepi_matrix plain = {.dtype = dtype}, transposed = {.dtype = dtype, .transposed = 1};
    const gemmepi_epilogue gate = GEMMEPI_SILU | GEMMEPI_GATED, add = GEMMEPI_ACCUMULATE_BIAS_GRAD;
    const int has_b1 = net->at[B1] != NULL, has_b2 = net->at[B2] != NULL;
    const gemmepi_matmul_desc is[PRODUCTS] = {
        /* act = value silu(gate), where value and gate are the halves of pre = x W1 + b1 */
        [FORWARD1] = {rows, 2 * hidden, width, .a = plain,
                      .epilogue = gate | GEMMEPI_AUX | (has_b1 ? GEMMEPI_BIAS : 0)},
        /* y = act W2, b2 added by one rank: this rank's part of the sum */
        [FORWARD2] = {rows, out, hidden, .a = plain, .epilogue = has_b2 ? GEMMEPI_BIAS : 0},
        /* dpre = the gate's gradient at pre of dy W2^T, its column sums are b1's */
        [BACKWARD2] = {rows, hidden, out, .a = plain, .b = transposed,
                       .epilogue = gate | GEMMEPI_BACKWARD | (has_b1 ? GEMMEPI_BGRAD | add : 0)},
        /* dx = dpre W1^T: this rank's part of the sum */
        [BACKWARD1] = {rows, width, 2 * hidden, .a = plain, .b = transposed},
        /* W2 += act^T dy, b2 += column sums of dy */
        [UPDATE2] = {hidden, out, all, .a = transposed, .b = plain, .flags = GEMMEPI_ACCUMULATE,
                     .epilogue = has_b2 ? GEMMEPI_BGRAD_B | add : 0},
        /* W1 += x^T dpre */
        [UPDATE1] = {width, 2 * hidden, all, .a = transposed, .b = plain, .flags = GEMMEPI_ACCUMULATE},
    };
    memcpy(descs, is, sizeof is);
    for (int i = 0; i < PRODUCTS; i++)
        descs[i].alignment = alignment_of(net, block);
}

/* Pointers of a block's products; those of UPDATE1 and 2 are of all rows. */
static void point(const network *net, int block, gemmepi_matmul_args args[PRODUCTS]) {
    void *const *on = net->at, *const *to = net->learns ? &net->at[W1] : &net->at[GW1];
    void *x = block_of(net, X, block), *pre = block_of(net, PRE, block), *act = block_of(net, ACT, block);
    void *dy = block_of(net, DY, block), *dpre = block_of(net, DPRE, block);
    const gemmepi_matmul_args is[PRODUCTS] = {
        [FORWARD1] = {.a = x, .b = on[W1], .bias = on[B1], .aux = pre, .d = act},
        [FORWARD2] = {.a = act, .b = on[W2], .bias = on[B2], .d = block_of(net, Y, block)},
        [BACKWARD2] = {.a = dy, .b = on[W2], .aux = pre, .bias_grad = to[B1], .d = dpre},
        [BACKWARD1] = {.a = dpre, .b = on[W1], .d = block_of(net, DX, block)},
        [UPDATE2] = {.a = on[ACT], .b = on[DY], .bias_grad = to[B2], .d = to[W2]},
        [UPDATE1] = {.a = on[X], .b = on[DPRE], .d = to[W1]},
    };
    memcpy(args, is, sizeof is);
}

/* A sum runs while the second block is multiplied, and what uses all rows behind it. */
static void run(const network *net, int product, int block) {
    const int plans = !net->overlaps ? WHOLE : block > 0 || product >= UPDATE2 ? BESIDE_SUMS : FIRST_BLOCK;
    gemmepi_matmul_args args[PRODUCTS];
    point(net, block, args);
    check(net->me, gemmepi_run_matmul(net->plans[plans][product], &args[product], net->me->stream));
}

/* The block's lines of y or dx become sums over the ranks: on the second stream, as soon as the first has made them. */
static void reduce(const network *net, int tensor, int block) {
    rank *me = net->me;
    if (net->is_alone || me->all->count == 1)
        return;
    if (net->overlaps)
        order(me, me->stream, me->made, me->sums);
    add_up(me, block_of(net, tensor, block), rows_of(net, block) * net->line[tensor], net->job->dtype,
           net->overlaps);
}

/* What comes to the first stream now comes after all sums. */
static void join(const network *net) {
    if (net->overlaps)
        order(net->me, net->me->sums, net->me->summed, net->me->stream);
}

static void forward(network *net) {
    if (++net->passes == 3 && net->me->number == net->job->options->fails)
        stop(net->me, "fails, as --fail says");
    if (net->passes == 3 && net->me->number == net->job->options->stalls)
        for (turn_to(net->me, "idle (--stall)");; look_around(net->me))
            doze();
    for (int block = 0; block < net->blocks; block++) {
        run(net, FORWARD1, block);
        run(net, FORWARD2, block);
        reduce(net, Y, block);
    }
    join(net);
}

/* Sums of dx run during the next block's products, and during those of W2's and W1's gradients. */
static void backward(network *net) {
    for (int block = 0; block < net->blocks; block++) {
        run(net, BACKWARD2, block);
        run(net, BACKWARD1, block);
        reduce(net, DX, block);
    }
    run(net, UPDATE2, 0); /* after the last product that reads W2 */
    run(net, UPDATE1, 0);
    join(net);
}

static void step(network *net) {
    forward(net);
    backward(net);
}

static void sums_alone(network *net) {
    for (int block = 0; block < net->blocks; block++) {
        reduce(net, Y, block);
        reduce(net, DX, block);
    }
    join(net);
}

/* With overlap in blocks; without it all rows at once, on one stream. One rank has nothing to overlap. */
static void choose_overlap(network *net, int overlaps) {
    net->overlaps = overlaps && net->me->all->count > 1;
    net->blocks = net->overlaps && net->job->options->last > 1 ? 2 : 1;
}

static void put(network *net, int tensor, const void *values) {
    const size_t bytes = (size_t)count_of(net, tensor) * gemmepi_dtype_size(net->job->dtype);
    finish(net->me);
    if (bytes)
        check(net->me, gemmepi_upload(net->me->context, net->at[tensor], values, bytes, net->me->stream));
}

static void get(network *net, int tensor, void *values) {
    const size_t bytes = (size_t)count_of(net, tensor) * gemmepi_dtype_size(net->job->dtype);
    finish(net->me);
    if (bytes)
        check(net->me, gemmepi_download(net->me->context, values, net->at[tensor], bytes, net->me->stream));
}

/* Plans all products, and runs each once before the first sum: what loads or allocates later might wait for a GPU on which a sum waits
   for this rank. */
static void open_network(network *net, rank *me) {
    net->me = me;
    net->job = me->all->job;
    net->hidden = first_gate(net->job, me->number + 1, me->all->count) -
                  first_gate(net->job, me->number, me->all->count);
    turn_to(me, "allocating");
    allocate_tensors(net);
    net->learns = net->job->options->is_bench;
    net->is_alone = 1;
    for (int plans = WHOLE; plans <= (me->all->count > 1 ? BESIDE_SUMS : WHOLE); plans++) {
        gemmepi_matmul_desc descs[PRODUCTS];
        choose_overlap(net, plans != WHOLE);
        describe(net, plans == BESIDE_SUMS && net->blocks > 1, descs);
        for (int i = 0; i < PRODUCTS; i++) {
            gemmepi_plan **plan = &net->plans[plans][i];
            turn_to(me, "planning");
            check(me, gemmepi_plan_matmul(plans == BESIDE_SUMS ? me->beside : me->context, &descs[i], plan));
            check(me, gemmepi_plan_prepare(*plan, me->stream));
        }
    }
}

static void warm_up(network *net) {
    turn_to(net->me, "running each product once");
    for (int overlaps = net->me->all->count > 1; overlaps >= 0; overlaps--) {
        choose_overlap(net, overlaps);
        step(net);
    }
    finish(net->me);
    meet(net->me);
    net->is_alone = net->passes = 0;
    choose_overlap(net, net->job->options->overlaps);
}

static void close_network(network *net) {
    finish(net->me);
    meet(net->me); /* no GPU reads what is freed here */
    for (int i = 0; i < PLANS * PRODUCTS; i++)
        gemmepi_plan_destroy(net->plans[i / PRODUCTS][i % PRODUCTS]);
    for (int i = 0; i < TENSORS; i++)
        check(net->me, gemmepi_free(net->me->context, net->at[i]));
}

/* ---- times ---- */

/* Seconds of one call of work, from when all ranks begin until all have done count. */
static double time_of(network *net, void (*work)(network *), int count) {
    meet(net->me);
    const double start = seconds();
    for (int i = 0; i < count; i++)
        work(net);
    finish(net->me);
    meet(net->me);
    return (seconds() - start) / count;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median of some rounds, in turns, so that a clock that changes is the same for all. Without overlap products and sums each
   have all of the GPU. */
static void measure(network *net) {
    enum { ROUNDS = 5 };
    const options *o = net->job->options;
    double plain[ROUNDS], overlapped[ROUNDS], sums[ROUNDS];
    const int ranks = net->me->all->count;
    for (int i = 0; i < ROUNDS; i++) {
        choose_overlap(net, 0);
        plain[i] = time_of(net, step, o->steps);
        sums[i] = time_of(net, sums_alone, o->steps);
        choose_overlap(net, 1);
        overlapped[i] = ranks > 1 ? time_of(net, step, o->steps) : 0;
        show_progress(net->me, "round", i + 1, ROUNDS, "");
    }
    qsort(plain, ROUNDS, sizeof(double), compare);
    qsort(overlapped, ROUNDS, sizeof(double), compare);
    qsort(sums, ROUNDS, sizeof(double), compare);
    if (net->me->number == 0)
        job_of(net->me)->times[ranks] = (timing){plain[ROUNDS / 2], overlapped[ROUNDS / 2],
                                                 ranks > 1 ? sums[ROUNDS / 2] : 0, ranks > 1 && o->overlaps};
}

enum { PIECE = 1 << 20 };

/* PIECE numbers from -most to most, in BF16 (cut) or F32. */
static unsigned char *draw(double most, uint64_t random, size_t size) {
    unsigned char *numbers = allocate(PIECE, sizeof(float));
    for (int i = 0; i < PIECE; i++) {
        const float value = (float)(most * (2 * uniform(&random) - 1));
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        const uint16_t upper = (uint16_t)(bits >> 16);
        memcpy(numbers + (size_t)i * size, size == 2 ? (const void *)&upper : (const void *)&value, size);
    }
    return numbers;
}

/* count elements from `at` on become those that the undivided tensor has from `whole` on: its numbers repeat. */
static void fill(network *net, int tensor, int64_t at, int64_t whole, int64_t count,
                 const unsigned char *numbers) {
    const size_t size = gemmepi_dtype_size(net->job->dtype);
    while (count > 0) {
        const int64_t from = whole % PIECE, now = PIECE - from < count ? PIECE - from : count;
        check(net->me, gemmepi_upload(net->me->context, (char *)net->at[tensor] + (size_t)at * size,
                                      numbers + (size_t)from * size, (size_t)now * size, net->me->stream));
        at += now, whole += now, count -= now;
    }
}

/* dy has a learning rate in it that is too small to change the weights. */
static void fill_all(network *net) {
    const size_t size = gemmepi_dtype_size(net->job->dtype);
    const int64_t width = net->job->width, whole = net->job->hidden, hidden = net->hidden;
    const int64_t first = first_gate(net->job, net->me->number, net->me->all->count);
    const double most[4] = {1 / sqrt((double)width), 1 / sqrt((double)whole), 1, 1e-7};
    unsigned char *numbers[4];
    for (int i = 0; i < 4; i++)
        numbers[i] = draw(most[i], (uint64_t)(net->job->options->seed + i), size);
    turn_to(net->me, "filling its tensors");
    for (int64_t i = 0; i < width; i++) { /* values, then gates */
        fill(net, W1, i * 2 * hidden, i * 2 * whole + first, hidden, numbers[0]);
        fill(net, W1, i * 2 * hidden + hidden, i * 2 * whole + whole + first, hidden, numbers[0]);
    }
    fill(net, W2, 0, first * net->job->out, count_of(net, W2), numbers[1]);
    fill(net, X, 0, 0, count_of(net, X), numbers[2]);
    fill(net, DY, 0, 0, count_of(net, DY), numbers[3]);
    for (int i = 0; i < 4; i++)
        free(numbers[i]);
}

static double value_at(const void *values, int64_t i, gemmepi_dtype dtype) {
    uint32_t bits;
    float value;
    if (dtype == GEMMEPI_F32)
        return (double)((const float *)values)[i];
    bits = (uint32_t)((const uint16_t *)values)[i] << 16;
    memcpy(&value, &bits, sizeof value);
    return (double)value;
}

/* y or dx of several ranks is that of one, which comes first and is kept, within rounding: shares fit together, and no product reads what
   is not there yet. */
static void compare_with_one(network *net, int tensor, const char *name, void **one) {
    const int ranks = net->me->all->count;
    const int64_t count = count_of(net, tensor);
    void *values = allocate((size_t)count, sizeof(float));
    double apart = 0, largest = 0;
    for (int i = 0; i < 3; i++)
        step(net);
    get(net, tensor, values);
    if (ranks == 1)
        *one = values;
    if (ranks == 1 || !*one)
        return;
    for (int64_t i = 0; i < count; i++) {
        const double value = value_at(*one, i, net->job->dtype);
        largest = larger(largest, fabs(value));
        apart = larger(apart, fabs(value - value_at(values, i, net->job->dtype)));
    }
    free(values);
    if (!(apart < 0.02 * largest)) /* a NaN too */
        stop(net->me, "its %s is off by %g from that of one %s; the largest is %g", name, apart,
             net->job->unit, largest);
    if (net->me->number == 0)
        printf("%d %ss: %s is that of one %s within %.0e of the largest\n", ranks, net->job->unit, name,
               net->job->unit, apart / largest);
}

static void bench(network *net) {
    task *job = job_of(net->me);
    fill_all(net);
    warm_up(net);
    compare_with_one(net, Y, "y", &job->y);
    compare_with_one(net, DX, "dx", &job->dx);
    measure(net);
}

/* ---- learning ---- */

/* Returns the cross entropy of one digit, and turns its logits into scale times their gradient. */
static double softmax(float logits[CLASSES], int label, double scale, int *right) {
    double sum = 0, power[CLASSES];
    int answer = 0;
    for (int i = 1; i < CLASSES; i++)
        answer = logits[i] > logits[answer] ? i : answer;
    const double largest = logits[answer], wanted = logits[label];
    for (int i = 0; i < CLASSES; i++)
        sum += power[i] = exp(logits[i] - largest);
    for (int i = 0; i < CLASSES; i++)
        logits[i] = (float)(scale * (power[i] / sum - (i == label)));
    *right += answer == label;
    return log(sum) + largest - wanted;
}

/* The digits that `those` lists, BATCH or fewer of them, of which all ranks compute the same loss; unless scale is 0, scale times its
   gradients are added to the weights, or to GW1 and so on. Rows that the batch lacks have no gradient. Returns the sum of losses. */
static double read_batch(network *net, const digits *set, const int *those, int count, double scale,
                         int *right) {
    float x[BATCH][PIXELS] = {{0}}, logits[BATCH][CLASSES];
    double loss = 0;
    for (int i = 0; i < count; i++)
        memcpy(x[i], set->all[those[i]].pixels, sizeof x[i]);
    put(net, X, x);
    forward(net);
    get(net, Y, logits);
    for (int i = 0; i < count; i++)
        loss += softmax(logits[i], set->all[those[i]].label, scale, right);
    if (scale == 0)
        return loss;
    memset(&logits[count], 0, (size_t)(BATCH - count) * sizeof logits[0]);
    put(net, DY, logits);
    backward(net);
    return loss;
}

/* Each digit of the set once. Returns their mean loss. */
static double read_all(network *net, const digits *set, const int *sequence, double rate, int *right) {
    double loss = 0;
    *right = 0;
    for (int i = 0; i < set->count; i += BATCH) {
        const int count = set->count - i < BATCH ? set->count - i : BATCH;
        loss += read_batch(net, set, &sequence[i], count, -rate / BATCH, right);
    }
    return loss / set->count;
}

static void shuffle(int *sequence, int count, uint64_t *random) {
    for (int i = count - 1; i > 0; i--) {
        const int j = (int)(uniform(random) * (i + 1)), swapped = sequence[i];
        sequence[i] = sequence[j];
        sequence[j] = swapped;
    }
}

static void learn(network *net) {
    const options *o = net->job->options;
    uint64_t random = (uint64_t)o->seed;
    int sequence[MOST_DIGITS], in_order[MOST_DIGITS], right;
    task *job = job_of(net->me);
    char more[64];
    for (int i = 0; i < MOST_DIGITS; i++)
        sequence[i] = in_order[i] = i;
    net->learns = 1;
    for (int i = 0; i < o->epochs; i++) {
        shuffle(sequence, net->job->training.count, &random); /* alike on all ranks */
        const double rate = 0.5 * (o->epochs - i) / o->epochs;
        const double loss = read_all(net, &net->job->training, sequence, rate, &right);
        if (!(loss < 1e3)) /* a NaN too */
            stop(net->me, "the loss grows without bound");
        snprintf(more, sizeof more, ", training loss %.6f", loss);
        show_progress(net->me, "epoch", i + 1, o->epochs, more);
        if (net->me->number == 0)
            job->loss[net->me->all->count][i] = loss;
    }
    read_all(net, &net->job->test, in_order, 0, &right);
    if (net->me->number == 0)
        job->right[net->me->all->count] = right;
    net->learns = 0;
}

/* ---- gradients against slopes ---- */

/* One number of a tensor goes up, down and back, on the rank that has it, or on all (x); all ranks compute the losses. */
static double slope(network *net, const digits *set, const int *those, int tensor, int64_t at, float value,
                    int is_mine) {
    const float moved[3] = {value + 0.01f, value - 0.01f, value};
    double losses[3];
    for (int j = 0; j < 3; j++) {
        float logits[BATCH][CLASSES];
        finish(net->me);
        if (is_mine)
            check(net->me, gemmepi_upload(net->me->context, (float *)net->at[tensor] + at, &moved[j],
                                          sizeof(float), net->me->stream));
        forward(net);
        get(net, Y, logits);
        losses[j] = 0;
        for (int i = 0, right; i < BATCH; i++)
            losses[j] += softmax(logits[i], set->all[those[i]].label, 0, &right);
    }
    return (losses[0] - losses[1]) / ((double)moved[0] - (double)moved[1]);
}

/* Some numbers of a tensor of the rank `owner`, -1: of all. Returns how far gradients are from slopes, by the largest slope. */
static double check_tensor(network *net, const digits *set, const int *those, int tensor, int gradient,
                           int owner) {
    const int is_mine = owner < 0 || owner == net->me->number;
    const int64_t count = count_of(net, tensor);
    const int64_t samples = 16, stride = count / samples > 0 ? count / samples | 1 : 1;
    float *values = allocate((size_t)count + 1, sizeof *values),
          *gradients = allocate((size_t)count + 1, sizeof *values);
    double worst = 0, largest = 0;
    get(net, tensor, values);
    get(net, gradient, gradients);
    for (int64_t i = 0; i < samples; i++) { /* as often on ranks that have no b2 */
        const int64_t at = count ? i * stride % count : 0;
        const double found = slope(net, set, those, tensor, at, values[at], is_mine);
        worst = larger(worst, fabs((double)gradients[at] - found));
        largest = larger(largest, fabs(found));
    }
    free(values);
    free(gradients);
    return is_mine ? worst / largest : 0;
}

static void check_gradients(network *net) {
    static const int names[5][2] = {{W1, GW1}, {B1, GB1}, {W2, GW2}, {B2, GB2}, {X, DX}};
    const digits *set = &net->job->training;
    task *job = job_of(net->me);
    float *zeros = allocate((size_t)count_of(net, W1), sizeof *zeros); /* the largest of the four */
    int those[BATCH], right = 0;
    double worst = 0;
    for (int i = 0; i < BATCH; i++)
        those[i] = i;
    for (int i = GW1; i <= GB2; i++)
        put(net, i, zeros);
    free(zeros);
    read_batch(net, set, those, BATCH, 1, &right);
    for (int i = 0; i < 5; i++) {
        const int is_shared = names[i][0] == X,
                  owners = is_shared || names[i][0] == B2 ? 1 : net->me->all->count;
        for (int owner = 0; owner < owners; owner++)
            worst = larger(worst,
                           check_tensor(net, set, those, names[i][0], names[i][1], is_shared ? -1 : owner));
    }
    if (!(worst < 0.01)) /* a NaN too */
        stop(net->me, "its gradients are off from the slopes of the loss by %g of the largest", worst);
    job->slope_error[net->me->number] = worst;
    meet(net->me);
    for (int i = 0; i < net->me->all->here; i++)
        worst = larger(worst, job->slope_error[net->me->all->of[i].number]);
    if (net->me->number == 0) {
        printf("%d %s%s: gradients are the slopes of the loss within %.0e of the largest\n",
               net->me->all->count, job->unit, plural(net->me->all->count), worst);
        fflush(stdout);
    }
}

/* This rank's share of the weights to begin with: columns of W1, of values and of gates, and rows of W2. */
static void initialise(network *net) {
    const int64_t hidden = net->hidden, first = first_gate(net->job, net->me->number, net->me->all->count);
    float *w1 = allocate((size_t)count_of(net, W1), sizeof *w1), zeros[2 * HIDDEN] = {0};
    for (int64_t i = 0; i < PIXELS; i++)
        for (int64_t j = 0; j < hidden; j++) {
            w1[i * 2 * hidden + j] = net->job->w1[i][first + j];
            w1[i * 2 * hidden + hidden + j] = net->job->w1[i][HIDDEN + first + j];
        }
    put(net, W1, w1);
    put(net, W2, net->job->w2[first]);
    put(net, B1, zeros);
    put(net, B2, zeros);
    free(w1);
}

static void study_digits(network *net) {
    const float zeros[BATCH][PIXELS] = {{0}};
    net->learns = 0;
    initialise(net);
    put(net, X, zeros);
    put(net, DY, zeros);
    warm_up(net);
    check_gradients(net);
    learn(net);
    measure(net);
}

/* ---- the ranks of one run ---- */

static void work(rank *me) {
    network *net = allocate(1, sizeof *net);
    open_network(net, me);
    if (net->job->options->is_bench)
        bench(net);
    else
        study_digits(net);
    close_network(net);
    free(net);
}

/* count ranks in all, of which this process has `here` from `first` on. */
static void run_with(const cuda_functions *cuda, const nccl_functions *nccl, task *job, int count, int first,
                     int here) {
    const options *o = job->options;
    team all = {
        .driver = cuda, .nccl = nccl, .count = count, .here = here, .patience = o->timeout, .failed = -1};
    all.work = work, all.job = job, all.id_path = o->id, all.ctas = o->ctas;
    all.of = allocate((size_t)here, sizeof *all.of);
    all.parts = allocate((size_t)count, sizeof *all.parts);
    pthread_mutex_init(&all.lock, NULL);
    pthread_cond_init(&all.change, NULL);
    job->loss[count] = allocate((size_t)o->epochs, sizeof(double));
    for (int i = 0; i < here; i++) {
        rank *r = &all.of[i];
        r->all = &all, r->number = first + i;
        r->device = !cuda ? -1 : o->rank >= 0 ? o->device : i;
    }
    run_ranks(&all);
    pthread_cond_destroy(&all.change);
    pthread_mutex_destroy(&all.lock);
    free(all.parts);
    free(all.of);
}

/* ---- what came of it ---- */

static void show_devices(const cuda_functions *cuda, const nccl_functions *nccl, int gpus) {
    for (int i = 0; cuda && i < gpus; i++) {
        char name[128] = "?";
        int count = 0;
        cuda->cuDeviceGetName(name, sizeof name, i);
        printf("GPU %d: %s, reaches the memory of:", i, name);
        for (int j = 0; j < gpus; j++) {
            int can = 0;
            if (i != j && !cuda->cuDeviceCanAccessPeer(&can, i, j) && can)
                printf(" %d", j), count++;
        }
        printf(count ? "\n" : " no other\n");
    }
    if (!cuda)
        printf("ranks are contexts of the host\n");
    if (nccl)
        printf("sums by NCCL %d.%d.%d, %s\n", nccl->version / 10000, nccl->version / 100 % 100,
               nccl->version % 100, nccl->path);
    else
        printf("sums in plain loops\n");
}

/* Returns 1 if all learnt the same as one rank does, within rounding, which grows from step to step. */
static int show_learning(const task *job, int most) {
    int agree = 1;
    for (int i = 1; i <= most; i++) {
        double apart = 0;
        if (!job->loss[i])
            continue;
        printf("%d %s%s: %.2f %% of the test digits right", i, job->unit, plural(i),
               100.0 * job->right[i] / job->test.count);
        for (int epoch = 0; epoch < job->options->epochs && job->loss[1]; epoch++)
            apart = larger(apart, fabs(job->loss[i][epoch] - job->loss[1][epoch]));
        if (i > 1 && job->loss[1])
            printf(", losses within %.1e of one %s's", apart, job->unit);
        putchar('\n');
        agree &= apart < 1e-3;
    }
    if (!agree)
        fprintf(stderr, "parallel: the losses are not those of one %s\n", job->unit);
    return agree;
}

/* ---- the program ---- */

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
        die(path, "cannot be read; --data PATH says where digits.csv is");
    for (int i = 0; i < MOST_DIGITS && read_digit(file, &next); i++) {
        digits *set = i % 4 == 3 ? test : training;
        set->all[set->count++] = next;
    }
    if (!feof(file) || training->count < BATCH || test->count == 0)
        die(path, "its lines must be 64 numbers from 0 to 16 and a class from 0 to 9, 2000 of them at most");
    fclose(file);
}

/* Sizes and data. Weights are uniform with variance 1 / inputs, whatever the number of ranks. */
static void make_job(task *job, const options *o) {
    uint64_t random = (uint64_t)o->seed;
    job->options = o;
    job->rows = o->tokens, job->width = o->width, job->hidden = o->hidden, job->out = o->width;
    job->dtype = o->is_host ? GEMMEPI_F32 : GEMMEPI_BF16;
    job->unit = o->is_host ? "rank" : "GPU";
    if (o->is_bench)
        return;
    job->rows = BATCH, job->width = PIXELS, job->hidden = HIDDEN, job->out = CLASSES;
    job->dtype = GEMMEPI_F32;
    load_digits(o->data, &job->training, &job->test);
    for (int i = 0; i < PIXELS * 2 * HIDDEN; i++)
        job->w1[i / (2 * HIDDEN)][i % (2 * HIDDEN)] =
            (float)((2 * uniform(&random) - 1) * sqrt(3.0 / PIXELS));
    for (int i = 0; i < HIDDEN * CLASSES; i++)
        job->w2[i / CLASSES][i % CLASSES] = (float)((2 * uniform(&random) - 1) * sqrt(3.0 / HIDDEN));
}

/* Unless an option says whether sums run at the same time as products, their size does. */
static void decide_overlap(const task *job, options *o) {
    const double bytes = (double)(job->rows * job->width) * (double)gemmepi_dtype_size(job->dtype);
    const int is_said = o->overlaps >= 0;
    if (!is_said)
        o->overlaps = bytes >= OVERLAP_FROM;
    if (o->rank > 0 || (o->rank < 0 && o->gpus == 1))
        return;
    printf("sums run %s products", o->overlaps ? "at the same time as" : "after");
    if (is_said)
        printf(", as --%soverlap says\n", o->overlaps ? "" : "no-");
    else
        printf(": a sum has %.0f bytes, and overlap is for %d and more (--overlap, --no-overlap)\n", bytes,
               OVERLAP_FROM);
}

static int number(const char *text, int least) {
    char *end, why[64];
    const long value = strtol(text, &end, 10);
    snprintf(why, sizeof why, "a number from %d to 1000000 is needed here", least);
    if (end == text || *end || value < least || value > 1000000)
        die(text, why);
    return (int)value;
}

static options read_options(int argc, char **argv) {
    options o = {.overlaps = -1, .last = 4, .ctas = 8, .seed = 1, .epochs = 10, .steps = 10, .timeout = 60};
    o.tokens = 8192, o.width = 4096, o.hidden = 14336; /* Llama-3-8B's */
    o.rank = o.ranks = o.device = o.fails = o.stalls = -1;
    o.data = "data/digits.csv", o.svg = "parallel.svg";
    const struct {
        const char *name;
        int *flag, value; /* that it sets */
        int *number, least;
        const char **text;
    } known[] = {{"--host", &o.is_host, 1, NULL, 0, NULL},
                 {"--bench", &o.is_bench, 1, NULL, 0, NULL},
                 {"--overlap", &o.overlaps, 1, NULL, 0, NULL},
                 {"--no-overlap", &o.overlaps, 0, NULL, 0, NULL},
                 {"--gpus", NULL, 0, &o.gpus, 1, NULL},
                 {"--last", NULL, 0, &o.last, 1, NULL},
                 {"--ctas", NULL, 0, &o.ctas, 0, NULL},
                 {"--seed", NULL, 0, &o.seed, 1, NULL},
                 {"--epochs", NULL, 0, &o.epochs, 1, NULL},
                 {"--steps", NULL, 0, &o.steps, 1, NULL},
                 {"--tokens", NULL, 0, &o.tokens, 1, NULL},
                 {"--width", NULL, 0, &o.width, 1, NULL},
                 {"--hidden", NULL, 0, &o.hidden, 1, NULL},
                 {"--timeout", NULL, 0, &o.timeout, 1, NULL},
                 {"--rank", NULL, 0, &o.rank, 0, NULL},
                 {"--ranks", NULL, 0, &o.ranks, 1, NULL},
                 {"--device", NULL, 0, &o.device, 0, NULL},
                 {"--fail", NULL, 0, &o.fails, 0, NULL},
                 {"--stall", NULL, 0, &o.stalls, 0, NULL},
                 {"--nccl", NULL, 0, NULL, 0, &o.nccl},
                 {"--id", NULL, 0, NULL, 0, &o.id},
                 {"--data", NULL, 0, NULL, 0, &o.data},
                 {"--svg", NULL, 0, NULL, 0, &o.svg}};
    const int count = (int)(sizeof known / sizeof known[0]);
    for (int i = 1; i < argc; i++) {
        int k = 0;
        while (k < count && strcmp(argv[i], known[k].name))
            k++;
        if (k == count)
            die(argv[i], "is not known; the options are at the head of examples/parallel.c");
        if (known[k].flag)
            *known[k].flag = known[k].value;
        else if (i + 1 == argc)
            die(argv[i], "something must follow it");
        else if (known[k].number)
            *known[k].number = number(argv[++i], known[k].least);
        else
            *known[k].text = argv[++i];
    }
    return o;
}

/* Whether there is a GPU is gemmepi's to say, and why not. */
static int find_gpus(cuda_functions *cuda, int *count) {
    gemmepi_context *context;
    gemmepi_context_details details;
    char reason[512];
    if (gemmepi_create(NULL, &context) || gemmepi_context_info(context, &details))
        die("gemmepi", gemmepi_last_error());
    gemmepi_destroy(context);
    if (details.is_host)
        return fprintf(stderr, "no GPU is used: %s\n", details.fallback_reason), 0;
    if (!load_driver(cuda, reason, sizeof reason) || cuda->cuDeviceGetCount(count))
        return fprintf(stderr, "no GPU is used: %s\n", reason), 0;
    return 1;
}

/* The options that do not go with one another, or with this machine. */
static void check_options(options *o, int gpus) {
    const int is_process = o->rank >= 0 || o->ranks >= 0 || o->id;
    const char *local = getenv("LOCAL_RANK"); /* torchrun's */
    const int ranks = is_process ? o->ranks : o->gpus, rows = o->is_bench ? o->tokens : BATCH;
    char why[200];
    if (is_process && (o->rank < 0 || o->ranks < 1 || !o->id || o->rank >= o->ranks || o->gpus))
        die("ranks as processes",
            "they need --rank R, below that of --ranks N, and --id FILE, and no --gpus");
    if (is_process && o->is_host && !o->nccl)
        die("ranks as processes", "they need GPUs and NCCL; on the host ranks are threads (--gpus G)");
    if (is_process && o->device < 0)
        o->device = local ? number(local, 0) : gpus ? o->rank % gpus : 0;
    snprintf(why, sizeof why, "there %s %d GPU%s; --host makes any number of contexts of the host",
             gpus == 1 ? "is" : "are", gpus, gpus == 1 ? "" : "s");
    if (!o->is_host && (o->gpus > gpus || o->device >= gpus))
        die(o->gpus > gpus ? "more GPUs than there are" : "--device", why);
    snprintf(why, sizeof why, "%d gates are too few for %d ranks, and %d ranks are the most; name fewer",
             o->is_bench ? o->hidden : HIDDEN, ranks, MOST_RANKS);
    if (ranks > MOST_RANKS || (o->is_bench ? o->hidden : HIDDEN) < ranks)
        die("the hidden layer", why);
    snprintf(why, sizeof why, "there are %d rows, and one in %d would be none; name a smaller number", rows,
             o->last);
    if (rows < o->last)
        die("--last", why);
}

/* Without NCCL several GPUs are of no use: then all is done on the host, unless that is not what was asked for. */
static int find_nccl(options *o, nccl_functions *library) {
    char reason[1200] = "";
    const int is_wanted = o->nccl || o->rank >= 0 || (!o->is_host && o->gpus > 1);
    if (!is_wanted || load_nccl(library, o->nccl, reason, sizeof reason))
        return is_wanted;
    if (o->nccl || o->rank >= 0)
        die("NCCL cannot be used", reason);
    fprintf(stderr, "NCCL cannot be used: %s\n", reason);
    fprintf(stderr,
            "Therefore this runs on the host. pip install nvidia-nccl-cu12 or -cu13, or --nccl PATH.\n");
    o->is_host = 1;
    return 0;
}

/* Returns what the program returns. */
static int show_results(const task *job, int most) {
    char title[100];
    const int same = job->options->is_bench || show_learning(job, most);
    snprintf(title, sizeof title, "A gated MLP's training step: %d rows, %d wide, %d gates", (int)job->rows,
             (int)job->width, (int)job->hidden);
    show_table(job->times, most, job->unit);
    if (!write_svg(job->options->svg, title, job->times, most, job->unit))
        die(job->options->svg, "cannot be written");
    printf("chart: %s\n", job->options->svg);
    return !same;
}

int main(int argc, char **argv) {
    static task job;
    static cuda_functions cuda;
    static nccl_functions library;
    options o = read_options(argc, argv);
    int gpus = 0, result = 0;
    o.is_host = o.is_host || !find_gpus(&cuda, &gpus);
    if (!o.gpus && o.rank < 0)
        o.gpus = gpus ? gpus : 2;
    check_options(&o, gpus);
    const nccl_functions *nccl = find_nccl(&o, &library) ? &library : NULL;
    const cuda_functions *driver = o.is_host ? NULL : &cuda;
    if (o.is_host && o.is_bench && (double)o.tokens * o.width * o.hidden > 1e9)
        die("--bench",
            "these sizes would take the host hours; --tokens, --width and --hidden name smaller ones");
    make_job(&job, &o);
    if (o.rank <= 0)
        show_devices(driver, nccl, gpus);
    decide_overlap(&job, &o);
    if (o.rank >= 0)
        run_with(driver, nccl, &job, o.ranks, o.rank, 1);
    for (int count = 1; count <= o.gpus; count++)
        run_with(driver, nccl, &job, count, 0, count);
    if (o.rank <= 0)
        result = show_results(&job, o.rank < 0 ? o.gpus : o.ranks);
    for (int i = 0; i <= MOST_RANKS; i++)
        free(job.loss[i]);
    free(job.y);
    free(job.dx);
    return result;
}
