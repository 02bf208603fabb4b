/* A projection, its residual, RMSNorm and the next projection, as in each block of a language model:

       h = x w1 + residual      ss = the sums of h's squares, row by row
       y = (h * rstd * gain) w2                                            rstd = 1 / sqrt(ss / width + eps)

   The norm needs no pass of its own. Its statistics are an output of the first product, and rstd, one number for each row, goes past the
   second product into its epilogue; gain, one for each row of w2, is multiplied into w2 once, ahead:

       d = v + residual; ss = row_sum(d * d)        in place: h is where the residual was
       d = v * rsqrt(ss / depth + eps)              depth: k of the second product, which is h's width

   So the normed h is never written. This compares y with plain loops at a small size, trains the second layer, and times both ways. On the GPU
   if there is one, else on the host.

   In training gain changes, so the norm is a formula of the layer's a, from which forward and backward make the normed h again; backward gives the
   gradients of h, of ss and of gain, and of h by way of ss comes 2 h d_ss:

       a.formula = "a * rsqrt(ss / depth + eps) * gain"

       norm_layer [--small] [--host] */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char add_and_sum[] = "d = v + residual; ss = row_sum(d * d)";
static const char times_rstd[] = "d = v * rsqrt(ss / depth + eps)";
static const double eps = 1e-5;

static gemmepi_context *context;
static int is_host;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "norm_layer: %s: %s\n", what, why);
    exit(1);
}

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK)
        fail(gemmepi_status_name(status), gemmepi_last_error());
}

static void *allocate(size_t count, size_t size) {
    void *memory = calloc(count, size);
    if (!memory)
        fail("memory", "there is not enough");
    return memory;
}

static double milliseconds(void) {
#ifdef _WIN32
    return 1e3 * clock() / CLOCKS_PER_SEC; /* not the processor's time there */
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
#endif
}

/* ---- numbers of 16 bits ---- */

typedef uint16_t bf16; /* the upper half of a float */

static float to_float(bf16 value) {
    const uint32_t bits = (uint32_t)value << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* To nearest, ties to even. */
static bf16 to_bf16(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float random_number(float most) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return most * ((float)(state >> 8) / (1 << 23) - 1);
}

/* ---- the layers ---- */

/* A matrix or vector twice: `here` on the host, and on the device. */
typedef struct tensor {
    size_t count;
    bf16 *here;
    void *there;
} tensor;

typedef struct layers {
    int64_t tokens, inner, width, out;
    tensor x, w1, residual; /* [tokens, inner], [inner, width], [tokens, width] */
    tensor w2, gained;      /* [width, out], and that with row i times gain[i] */
    tensor gain, y;         /* [width], [tokens, out] */
    void *h, *normed;       /* [tokens, width] on the device; normed only on the way through memory */
    float *ss;              /* [tokens] on the device */
} layers;

static void *room(size_t bytes) {
    void *pointer;
    check(gemmepi_alloc(context, bytes, &pointer));
    return pointer;
}

static tensor new_tensor(int64_t rows, int64_t columns, float most) {
    tensor t;
    t.count = (size_t)(rows * columns);
    t.here = allocate(t.count, sizeof *t.here);
    for (size_t i = 0; i < t.count; i++)
        t.here[i] = to_bf16(random_number(most));
    t.there = room(t.count * sizeof *t.here);
    check(gemmepi_upload(context, t.there, t.here, t.count * sizeof *t.here, NULL));
    return t;
}

static void free_tensor(tensor *t) {
    check(gemmepi_free(context, t->there));
    free(t->here);
}

static void open_layers(layers *l) {
    const float of_inner = sqrtf(3 / (float)l->inner), of_width = sqrtf(3 / (float)l->width);
    l->x = new_tensor(l->tokens, l->inner, 1), l->w1 = new_tensor(l->inner, l->width, of_inner);
    l->residual = new_tensor(l->tokens, l->width, 2), l->w2 = new_tensor(l->width, l->out, of_width);
    l->gained = new_tensor(l->width, l->out, of_width);
    l->gain = new_tensor(1, l->width, 1), l->y = new_tensor(l->tokens, l->out, 0);
    for (int64_t i = 0; i < l->width * l->out; i++)
        l->gained.here[i] = to_bf16(to_float(l->w2.here[i]) * to_float(l->gain.here[i / l->out]));
    check(gemmepi_upload(context, l->gained.there, l->gained.here, l->gained.count * sizeof(bf16), NULL));
    l->h = room(l->residual.count * sizeof(bf16)), l->normed = room(l->residual.count * sizeof(bf16));
    l->ss = room((size_t)l->tokens * sizeof(float));
}

static void close_layers(layers *l) {
    tensor *const all[] = {&l->x, &l->w1, &l->residual, &l->w2, &l->gained, &l->gain, &l->y};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free_tensor(all[i]);
    check(gemmepi_free(context, l->h)), check(gemmepi_free(context, l->normed));
    check(gemmepi_free(context, l->ss));
}

/* The residual where h will be: each of the ways begins with it, which is not timed. */
static void put_residual(layers *l) {
    check(gemmepi_upload(context, l->h, l->residual.here, l->residual.count * sizeof(bf16), NULL));
}

static gemmepi_operand operand(const char *name, gemmepi_operand_kind kind, gemmepi_dtype dtype, int output) {
    gemmepi_operand made;
    memset(&made, 0, sizeof made);
    made.name = name, made.kind = kind, made.dtype = dtype, made.output = output;
    return made;
}

/* D [m, n] = A [m, k] B [k, n] in BF16 */
static gemmepi_matmul_desc product(int64_t m, int64_t n, int64_t k) {
    gemmepi_matmul_desc desc = {.m = m, .n = n, .k = k};
    desc.a.dtype = GEMMEPI_BF16;
    return desc;
}

/* Bytes of workspace that the largest product needs; NULL: not wanted. */
static size_t *most_workspace;

static void run(const gemmepi_matmul_desc *desc, const gemmepi_matmul_args *args) {
    if (most_workspace) {
        gemmepi_plan *plan;
        gemmepi_plan_details details;
        check(gemmepi_plan_matmul(context, desc, &plan));
        check(gemmepi_plan_info(plan, &details));
        gemmepi_plan_destroy(plan);
        if (*most_workspace < details.workspace_size)
            *most_workspace = details.workspace_size;
    }
    check(gemmepi_matmul(context, desc, args, NULL));
}

/* ---- the norm within the products ---- */

static void first_product(layers *l) {
    const gemmepi_operand operands[] = {operand("residual", GEMMEPI_FULL, GEMMEPI_BF16, 0),
                                        operand("ss", GEMMEPI_PER_ROW, GEMMEPI_F32, 1)};
    void *const pointers[] = {l->h, l->ss};
    gemmepi_matmul_desc desc = product(l->tokens, l->width, l->inner);
    const gemmepi_matmul_args args = {.a = l->x.there, .b = l->w1.there, .d = l->h, .operands = pointers};
    desc.formula = add_and_sum, desc.operands = operands, desc.operand_count = 2;
    run(&desc, &args);
}

static void second_product(layers *l) {
    double number = eps; /* on the host, read by each run */
    const gemmepi_operand operands[] = {operand("ss", GEMMEPI_PER_ROW, GEMMEPI_F32, 0),
                                        operand("eps", GEMMEPI_NUMBER, GEMMEPI_DTYPE_DEFAULT, 0)};
    void *const pointers[] = {l->ss, gemmepi_number(&number)};
    gemmepi_matmul_desc desc = product(l->tokens, l->out, l->width);
    const gemmepi_matmul_args args = {.a = l->h, .b = l->gained.there, .d = l->y.there, .operands = pointers};
    desc.formula = times_rstd, desc.operands = operands, desc.operand_count = 2;
    run(&desc, &args);
}

static void within_products(layers *l) {
    first_product(l);
    second_product(l);
}

/* ---- the norm as a pass ---- */

/* normed = h * rstd * gain: products of no terms, k = 0, whose formulas read h as an operand. */
static void norm_pass(layers *l) {
    double number = eps;
    gemmepi_operand operands[] = {operand("h", GEMMEPI_FULL, GEMMEPI_BF16, 0),
                                  operand("ss", GEMMEPI_PER_ROW, GEMMEPI_F32, 1),
                                  operand("gain", GEMMEPI_PER_COLUMN, GEMMEPI_BF16, 0),
                                  operand("eps", GEMMEPI_NUMBER, GEMMEPI_DTYPE_DEFAULT, 0)};
    void *const pointers[] = {l->h, l->ss, l->gain.there, gemmepi_number(&number)};
    gemmepi_matmul_desc desc = product(l->tokens, l->width, 0);
    gemmepi_matmul_args args = {.operands = pointers};
    desc.formula = "ss = row_sum(h * h)", desc.operands = operands, desc.operand_count = 2;
    run(&desc, &args);
    desc.formula = "d = h * rsqrt(ss / columns + eps) * gain", desc.operand_count = 4;
    operands[1].output = 0, args.d = l->normed;
    run(&desc, &args);
}

/* The same in plain loops, where the device's memory is the host's. */
static void norm_loop(layers *l) {
    const bf16 *h = l->h;
    bf16 *normed = l->normed;
    for (int64_t i = 0; i < l->tokens; i++) {
        float sum = 0;
        for (int64_t j = 0; j < l->width; j++)
            sum += to_float(h[i * l->width + j]) * to_float(h[i * l->width + j]);
        const float rstd = 1 / sqrtf(sum / (float)l->width + (float)eps);
        for (int64_t j = 0; j < l->width; j++)
            normed[i * l->width + j] =
                to_bf16(to_float(h[i * l->width + j]) * rstd * to_float(l->gain.here[j]));
    }
}

static void around(layers *l, void (*norm)(layers *)) {
    gemmepi_matmul_desc first = product(l->tokens, l->width, l->inner);
    const gemmepi_matmul_desc second = product(l->tokens, l->out, l->width);
    gemmepi_matmul_args args = {.a = l->x.there, .b = l->w1.there, .d = l->h};
    const gemmepi_matmul_args next = {.a = l->normed, .b = l->w2.there, .d = l->y.there};
    first.epilogue = GEMMEPI_RESIDUAL;
    args.residual = l->h;
    run(&first, &args);
    norm(l);
    run(&second, &next);
}

static void by_passes(layers *l) {
    around(l, norm_pass);
}

static void through_memory(layers *l) {
    around(l, is_host ? norm_loop : norm_pass);
}

/* ---- against plain loops ---- */

static double dot(const tensor *a, const tensor *b, int64_t row, int64_t column, int64_t count, int64_t ld) {
    double sum = 0;
    for (int64_t s = 0; s < count; s++)
        sum += (double)to_float(a->here[row * count + s]) * (double)to_float(b->here[s * ld + column]);
    return sum;
}

/* The largest error of y, which is downloaded, over its largest value; all else in double. */
static double error_of_y(layers *l) {
    double worst = 0, largest = 0, *h = allocate((size_t)l->width, sizeof *h);
    check(gemmepi_download(context, l->y.here, l->y.there, l->y.count * sizeof(bf16), NULL));
    for (int64_t i = 0; i < l->tokens; i++) {
        double ss = 0;
        for (int64_t j = 0; j < l->width; j++) {
            h[j] = dot(&l->x, &l->w1, i, j, l->inner, l->width) +
                   (double)to_float(l->residual.here[i * l->width + j]);
            ss += h[j] * h[j];
        }
        const double rstd = 1 / sqrt(ss / (double)l->width + eps);
        for (int64_t j = 0; j < l->out; j++) {
            double y = 0;
            for (int64_t s = 0; s < l->width; s++)
                y += h[s] * rstd * (double)to_float(l->gain.here[s]) *
                     (double)to_float(l->w2.here[s * l->out + j]);
            const double error = fabs((double)to_float(l->y.here[i * l->out + j]) - y);
            worst = error <= worst ? worst : error; /* a NaN stays */
            largest = fmax(largest, fabs(y));
        }
    }
    free(h);
    return worst / largest;
}

static void check_way(const char *name, void (*way)(layers *)) {
    layers l = {.tokens = 37, .inner = 40, .width = 72, .out = 51};
    open_layers(&l);
    put_residual(&l);
    way(&l);
    const double error = error_of_y(&l);
    printf("norm %-20s y is that of plain loops within %.1e of the largest\n", name, error);
    if (!(error < 0.01)) /* a NaN too; h, weights and y are BF16 */
        fail(name, "that is not what plain loops give");
    close_layers(&l);
}

/* ---- training ---- */

enum { ROWS = 96, WIDTH = 40, OUT = 24, STEPS = 300 };

/* A layer behind the norm in F32, and what it should give. All on the device. */
typedef struct student {
    float *h, *ss, *gain, *w2, *y; /* [ROWS, WIDTH], [ROWS], [WIDTH], [WIDTH, OUT], [ROWS, OUT] */
    float *target, *dy, *loss;     /* [ROWS, OUT] twice, [] */
    float *d_h, *d_ss, *d_gain, *d_w2, *direction; /* of the same shapes */
} student;

static float *new_floats(int count, float most, float middle) {
    float numbers[ROWS * WIDTH], *there = room((size_t)count * sizeof *numbers);
    for (int i = 0; i < count; i++)
        numbers[i] = middle + random_number(most);
    check(gemmepi_upload(context, there, numbers, (size_t)count * sizeof *numbers, NULL));
    return there;
}

/* The formula over [rows, columns], whose operands have the names' order and pointers; `d` is written to d, if that is not NULL. */
static void over(const char *formula, int rows, int columns, float *d, int count,
                 const gemmepi_operand *operands, void *const *pointers) {
    gemmepi_matmul_desc desc = {.m = rows, .n = columns};
    const gemmepi_matmul_args args = {.d = d, .operands = pointers};
    desc.formula = formula, desc.operands = operands, desc.operand_count = count;
    check(gemmepi_matmul(context, &desc, &args, NULL));
}

static gemmepi_operand of_f32(const char *name, gemmepi_operand_kind kind, int output) {
    return operand(name, kind, GEMMEPI_F32, output);
}

/* y, or the gradients by dy */
static void layer_behind_norm(const student *s, int backward) {
    double number = eps;
    const gemmepi_operand operands[] = {of_f32("ss", GEMMEPI_PER_ROW, 0), of_f32("d_ss", GEMMEPI_PER_ROW, 1),
                                        of_f32("gain", GEMMEPI_PER_COLUMN, 0),
                                        of_f32("d_gain", GEMMEPI_PER_COLUMN, 1),
                                        operand("eps", GEMMEPI_NUMBER, GEMMEPI_DTYPE_DEFAULT, 0)};
    void *const pointers[] = {s->ss, s->d_ss, s->gain, s->d_gain, gemmepi_number(&number)};
    gemmepi_linear_desc desc = {.m = ROWS, .n = OUT, .k = WIDTH, .operands = operands, .operand_count = 5};
    const gemmepi_linear_args args = {
        .a = s->h, .b = s->w2, .y = s->y, .dy = s->dy, .da = s->d_h, .db = s->d_w2, .operands = pointers};
    desc.a.formula = "a * rsqrt(ss / depth + eps) * gain";
    desc.flags = GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB;
    check(backward ? gemmepi_linear_backward(context, &desc, &args, NULL)
                   : gemmepi_linear(context, &desc, &args, NULL));
}

static void statistics(const student *s) {
    const gemmepi_operand operands[] = {of_f32("h", GEMMEPI_FULL, 0), of_f32("ss", GEMMEPI_PER_ROW, 1)};
    void *const pointers[] = {s->h, s->ss};
    over("ss = row_sum(h * h)", ROWS, WIDTH, NULL, 2, operands, pointers);
}

/* Half the squares of what y is off, and dy. */
static double loss_of(const student *s) {
    const gemmepi_operand operands[] = {of_f32("y", GEMMEPI_FULL, 0), of_f32("t", GEMMEPI_FULL, 0),
                                        of_f32("loss", GEMMEPI_SCALAR, 1)};
    void *const pointers[] = {s->y, s->target, s->loss};
    float loss;
    statistics(s);
    layer_behind_norm(s, 0);
    over("d = y - t; loss = all_sum(d * d / 2)", ROWS, OUT, s->dy, 3, operands, pointers);
    check(gemmepi_download(context, &loss, s->loss, sizeof loss, NULL));
    return (double)loss;
}

/* x += factor g, [rows, columns] */
static void move(float *x, float *g, double factor, int rows, int columns) {
    const gemmepi_operand operands[] = {of_f32("x", GEMMEPI_FULL, 0), of_f32("g", GEMMEPI_FULL, 0),
                                        operand("factor", GEMMEPI_NUMBER, GEMMEPI_DTYPE_DEFAULT, 0)};
    void *const pointers[] = {x, g, gemmepi_number(&factor)};
    over("d = x + factor * g", rows, columns, x, 3, operands, pointers);
}

/* d_h, which is what a's gradient leaves, with what goes by way of ss. */
static void finish_gradient_of_h(const student *s) {
    const gemmepi_operand operands[] = {of_f32("d_a", GEMMEPI_FULL, 0), of_f32("h", GEMMEPI_FULL, 0),
                                        of_f32("d_ss", GEMMEPI_PER_ROW, 0)};
    void *const pointers[] = {s->d_h, s->h, s->d_ss};
    over("d = d_a + 2 * h * d_ss", ROWS, WIDTH, s->d_h, 3, operands, pointers);
}

/* How far the gradient of h is off a difference of losses, over that. */
static double error_of_gradient(const student *s) {
    const double step = 0.01;
    float d_h[ROWS * WIDTH], direction[ROWS * WIDTH];
    double slope = 0, difference;
    (void)loss_of(s);
    layer_behind_norm(s, 1);
    finish_gradient_of_h(s);
    check(gemmepi_download(context, d_h, s->d_h, sizeof d_h, NULL));
    check(gemmepi_download(context, direction, s->direction, sizeof direction, NULL));
    for (int i = 0; i < ROWS * WIDTH; i++)
        slope += (double)d_h[i] * (double)direction[i];
    move(s->h, s->direction, step, ROWS, WIDTH);
    difference = loss_of(s);
    move(s->h, s->direction, -2 * step, ROWS, WIDTH);
    difference = (difference - loss_of(s)) / (2 * step);
    move(s->h, s->direction, step, ROWS, WIDTH);
    return fabs(slope - difference) / fabs(difference);
}

static void train(void) {
    student s = {.h = new_floats(ROWS * WIDTH, 2, 0),
                 .ss = new_floats(ROWS, 0, 0),
                 .gain = new_floats(WIDTH, 0.5f, 1)};
    s.w2 = new_floats(WIDTH * OUT, 0.3f, 0), s.y = new_floats(ROWS * OUT, 0, 0),
    s.target = new_floats(ROWS * OUT, 0, 0);
    s.dy = new_floats(ROWS * OUT, 0, 0), s.loss = new_floats(1, 0, 0), s.d_h = new_floats(ROWS * WIDTH, 0, 0);
    s.d_ss = new_floats(ROWS, 0, 0), s.d_gain = new_floats(WIDTH, 0, 0),
    s.d_w2 = new_floats(WIDTH * OUT, 0, 0);
    s.direction = new_floats(ROWS * WIDTH, 1, 0);
    float *const all[] = {s.h,    s.ss,  s.gain, s.w2,     s.y,    s.target,   s.dy,
                          s.loss, s.d_h, s.d_ss, s.d_gain, s.d_w2, s.direction};
    (void)loss_of(&s); /* what another layer of that kind gives is the target */
    move(s.target, s.y, 1, ROWS, OUT);
    move(s.w2, s.direction, 0.1, WIDTH, OUT), move(s.gain, s.direction, -0.3, 1, WIDTH);
    const double error = error_of_gradient(&s), first = loss_of(&s);
    double last = first;
    for (int step = 0; step < STEPS; step++) {
        layer_behind_norm(&s, 1);
        move(s.w2, s.d_w2, -0.003, WIDTH, OUT), move(s.gain, s.d_gain, -0.003, 1, WIDTH);
        last = loss_of(&s);
    }
    printf(
        "norm trained: the loss goes from %.2f to %.4f in %d steps; h's gradient is a difference's within %.0e\n",
        first, last, STEPS, error);
    if (!(error < 0.01) || !(last < first / 100))
        fail("training", "the gradient is not that of the loss, or nothing was learned");
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        check(gemmepi_free(context, all[i]));
}

/* ---- the time of both ways ---- */

/* The median of some runs, behind one that plans and compiles, and is asked for its workspace. */
static double time_of(layers *l, void (*way)(layers *), size_t *workspace) {
    enum { RUNS = 5 };
    double times[RUNS];
    *workspace = 0;
    for (int i = -1; i < RUNS; i++) {
        put_residual(l);
        check(gemmepi_synchronize(context, NULL));
        most_workspace = i < 0 ? workspace : NULL;
        const double began = milliseconds();
        way(l);
        check(gemmepi_synchronize(context, NULL));
        const double took = milliseconds() - began;
        int at = i; /* sorted in */
        for (; at > 0 && times[at - 1] > took; at--)
            times[at] = times[at - 1];
        if (i >= 0)
            times[at] = took;
    }
    return times[RUNS / 2];
}

static void race(int64_t tokens, int64_t inner, int64_t width, int64_t out) {
    layers l = {.tokens = tokens, .inner = inner, .width = width, .out = out};
    const double normed = 2e-6 * (double)(tokens * width);
    size_t workspace, other;
    open_layers(&l);
    const double within = time_of(&l, within_products, &workspace);
    const double pass = time_of(&l, through_memory, &other);
    printf("\n%d tokens; widths %d, %d, %d; BF16\n", (int)tokens, (int)inner, (int)width, (int)out);
    printf("norm within the products %9.3f ms, workspace %.2f MB\n", within, 1e-6 * (double)workspace);
    printf("norm as a pass between   %9.3f ms, workspace %.2f MB\n", pass, 1e-6 * (double)other);
    if (is_host)
        printf("(the host evaluates formulas slowly: these times say nothing of a GPU's)\n");
    printf("saved: the normed matrix, %.2f MB, which a pass writes and the next product reads\n", normed);
    close_layers(&l);
}

/* The device, if it runs these formulas, else the host. */
static void open_context(int device) {
    const gemmepi_config config = {.device = device}, host = {.device = GEMMEPI_DEVICE_HOST};
    const gemmepi_operand ss = operand("ss", GEMMEPI_PER_ROW, GEMMEPI_F32, 1);
    gemmepi_matmul_desc probe = product(64, 64, 64);
    gemmepi_context_details details;
    gemmepi_plan *plan;
    probe.formula = "d = v; ss = row_sum(v * v)", probe.operands = &ss, probe.operand_count = 1;
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
    is_host = details.is_host;
}

int main(int argc, char **argv) {
    int device = 0, is_small = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--host"))
            device = GEMMEPI_DEVICE_HOST;
        else if (!strcmp(argv[i], "--small"))
            is_small = 1;
        else if (!strcmp(argv[i], "--help"))
            return puts(
                       "norm_layer [--small] [--host]\n  --small  64 tokens of width 128\n  --host   not on the GPU") <
                   0;
        else
            fail(argv[i], "known are --small, --host and --help");
    }
    open_context(device);
    check_way("within the products:", within_products);
    check_way("as a pass:", by_passes);
    train();
    if (is_small)
        race(64, 128, 128, 128);
    else if (is_host)
        race(256, 256, 256, 256);
    else
        race(8192, 4096, 4096, 4096);
    gemmepi_destroy(context);
    return 0;
}
