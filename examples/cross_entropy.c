/* A language model's head: logits = x w^T, and the loss of the tokens that should have come. There are as many logits as tokens times words,
   and all that is wanted of a row of them is one number for the loss:

       lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)       loss = the mean of lse - hit

   A layer with these as its formula stores no logits. Its backward takes the gradients of the loss by lse and hit, here 1 / tokens and
   -1 / tokens, and goes by blocks of rows: it computes the logits of a block, writes lse and hit, turns the logits into

       d_v = exp(v - lse) * dy_lse + (column == label ? dy_hit : 0)

   and adds dx = d_v w and dw += d_v^T x. This holds both against plain loops at a small size, then against the way through memory: the
   product, a pass for the loss, another for the gradient. On the GPU if there is one, else on the host, where formulas are slow.

       cross_entropy [--small | --large] [--host] */
#define _POSIX_C_SOURCE 199309L /* clock_gettime */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char loss_of_v[] = "lse = row_logsumexp(v); hit = row_sum(column == label ? v : 0)";
static const char loss_of_z[] = "lse = row_logsumexp(z); hit = row_sum(column == label ? z : 0)";
static const char gradient_of_z[] = "d = (exp(z - lse) - (column == label)) * scale";

static gemmepi_context *context;
static int is_host;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "cross_entropy: %s: %s\n", what, why);
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

/* ---- the head ---- */

typedef uint16_t bf16; /* the upper half of a float */

static float to_float(bf16 value) {
    const uint32_t bits = (uint32_t)value << 16;
    float result;
    memcpy(&result, &bits, sizeof result);
    return result;
}

/* Multiples of step up to 63 of it, which BF16 holds as they are. */
static void fill(bf16 *values, size_t count, float step) {
    uint32_t state = (uint32_t)count; /* x and w have others */
    for (size_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        const float value = step * (float)((int)(state >> 25) - 64);
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        values[i] = (bf16)(bits >> 16);
    }
}

/* Pointers to the device: to hand on, not to read from here. x [tokens, width] and w [words, width] are BF16, and so are dx and logits; the
   sums dw, lse and hit are floats. */
typedef struct head {
    int64_t tokens, words, width;
    size_t limit; /* bytes of workspace, most of which are a block's gradient by its logits; 0: the default */
    bf16 *x, *w, *dx;
    float *dw, *lse, *hit;
    int64_t *labels;
    bf16 *logits;          /* [tokens, words], and NULL without */
    bf16 *x_here, *w_here; /* the same on the host */
    int64_t *labels_here;
} head;

static void *room(size_t bytes) {
    void *pointer;
    check(gemmepi_alloc(context, bytes, &pointer));
    return pointer;
}

static void open_head(head *h) {
    const size_t tokens = (size_t)h->tokens, words = (size_t)h->words, width = (size_t)h->width;
    h->x_here = allocate(tokens * width, sizeof(bf16)), h->w_here = allocate(words * width, sizeof(bf16));
    h->labels_here = allocate(tokens, sizeof(int64_t));
    fill(h->x_here, tokens * width, 1.0f / 64);
    fill(h->w_here, words * width, 1.0f / 256);
    for (int64_t i = 0; i < h->tokens; i++)
        h->labels_here[i] = (i * 7919 + 3) % h->words;
    h->x = room(tokens * width * sizeof(bf16)), h->dx = room(tokens * width * sizeof(bf16));
    h->w = room(words * width * sizeof(bf16)), h->dw = room(words * width * sizeof(float));
    h->lse = room(tokens * sizeof(float)), h->hit = room(tokens * sizeof(float));
    h->labels = room(tokens * sizeof(int64_t));
    check(gemmepi_upload(context, h->x, h->x_here, tokens * width * sizeof(bf16), NULL));
    check(gemmepi_upload(context, h->w, h->w_here, words * width * sizeof(bf16), NULL));
    check(gemmepi_upload(context, h->labels, h->labels_here, tokens * sizeof(int64_t), NULL));
}

static void close_head(head *h) {
    void *const there[] = {h->x, h->dx, h->w, h->dw, h->lse, h->hit, h->labels, h->logits};
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        check(gemmepi_free(context, there[i]));
    free(h->x_here), free(h->w_here), free(h->labels_here);
}

/* The mean of lse - hit, from the rows' numbers only. */
static double mean_loss(const head *h) {
    const size_t bytes = (size_t)h->tokens * sizeof(float);
    float *lse = allocate((size_t)h->tokens, sizeof *lse), *hit = allocate((size_t)h->tokens, sizeof *hit);
    double sum = 0;
    check(gemmepi_download(context, lse, h->lse, bytes, NULL));
    check(gemmepi_download(context, hit, h->hit, bytes, NULL));
    for (int64_t i = 0; i < h->tokens; i++)
        sum += (double)lse[i] - (double)hit[i];
    free(lse), free(hit);
    return sum / (double)h->tokens;
}

/* Bytes of workspace that the largest plan needs; NULL: not wanted. */
static size_t *most_workspace;

static void count_workspace(gemmepi_plan *plan) {
    gemmepi_plan_details details;
    check(gemmepi_plan_info(plan, &details));
    gemmepi_plan_destroy(plan);
    if (*most_workspace < details.workspace_size)
        *most_workspace = details.workspace_size;
}

static void run(const gemmepi_matmul_desc *desc, const gemmepi_matmul_args *args) {
    gemmepi_plan *plan;
    if (most_workspace) {
        check(gemmepi_plan_matmul(context, desc, &plan));
        count_workspace(plan);
    }
    check(gemmepi_matmul(context, desc, args, NULL));
}

/* ---- without logits ---- */

static gemmepi_operand operand(const char *name, gemmepi_operand_kind kind, gemmepi_dtype dtype, int output) {
    gemmepi_operand made;
    memset(&made, 0, sizeof made);
    made.name = name, made.kind = kind, made.dtype = dtype, made.output = output;
    return made;
}

/* The loss, and with_gradient dx and dw. dy_lse and dy_hit are the gradients of the mean, which are known ahead: so backward runs forward,
   too, and computes each logit once. */
static void run_head(head *h, int with_gradient) {
    const double dy_lse = 1 / (double)h->tokens, dy_hit = -dy_lse; /* NUMBERs are on the host */
    const gemmepi_operand operands[] = {operand("label", GEMMEPI_PER_ROW, GEMMEPI_I64, 0),
                                        operand("lse", GEMMEPI_PER_ROW, GEMMEPI_F32, 1),
                                        operand("hit", GEMMEPI_PER_ROW, GEMMEPI_F32, 1),
                                        operand("dy_lse", GEMMEPI_NUMBER, GEMMEPI_DTYPE_DEFAULT, 0),
                                        operand("dy_hit", GEMMEPI_NUMBER, GEMMEPI_DTYPE_DEFAULT, 0)};
    void *const pointers[] = {h->labels, h->lse, h->hit, gemmepi_number(&dy_lse), gemmepi_number(&dy_hit)};
    gemmepi_linear_desc desc = {.m = h->tokens, .n = h->words, .k = h->width, .workspace_limit = h->limit};
    gemmepi_linear_args args = {.a = h->x, .b = h->w, .da = h->dx, .db = h->dw, .operands = pointers};
    gemmepi_plan *plan;
    desc.flags = GEMMEPI_LINEAR_FORWARD | GEMMEPI_LINEAR_DA | GEMMEPI_LINEAR_DB;
    desc.a.dtype = GEMMEPI_BF16;
    desc.b.transposed = 1;
    desc.db.dtype = GEMMEPI_F32; /* blocks add to it */
    desc.formula = loss_of_v, desc.operands = operands, desc.operand_count = 5;
    if (most_workspace) {
        check((with_gradient ? gemmepi_plan_linear_backward : gemmepi_plan_linear)(context, &desc, &plan));
        count_workspace(plan);
    }
    check((with_gradient ? gemmepi_linear_backward : gemmepi_linear)(context, &desc, &args, NULL));
}

static void loss_alone(head *h) {
    run_head(h, 0);
}

static void loss_and_gradient(head *h) {
    run_head(h, 1);
}

/* ---- through memory ---- */

/* A pass over logits: a product of no terms, k = 0, with a formula that reads them as an operand. */
static void pass(head *h, const char *formula, int writes_lse, void *d) {
    double scale = 1 / (double)h->tokens;
    const gemmepi_operand operands[] = {
        operand("z", GEMMEPI_FULL, GEMMEPI_BF16, 0), operand("label", GEMMEPI_PER_ROW, GEMMEPI_I64, 0),
        operand("lse", GEMMEPI_PER_ROW, GEMMEPI_F32, writes_lse),
        writes_lse ? operand("hit", GEMMEPI_PER_ROW, GEMMEPI_F32, 1)
                   : operand("scale", GEMMEPI_NUMBER, GEMMEPI_DTYPE_DEFAULT, 0)};
    void *const pointers[] = {h->logits, h->labels, h->lse,
                              writes_lse ? (void *)h->hit : gemmepi_number(&scale)};
    gemmepi_matmul_desc desc = {.m = h->tokens, .n = h->words};
    gemmepi_matmul_args args = {.operands = pointers, .d = d};
    desc.a.dtype = GEMMEPI_BF16;
    desc.formula = formula, desc.operands = operands, desc.operand_count = 4;
    run(&desc, &args);
}

/* The same in plain loops, where the device's memory is the host's. */
static void loss_loop(head *h) {
    for (int64_t i = 0; i < h->tokens; i++) {
        const bf16 *row = h->logits + i * h->words;
        float most = to_float(row[0]), sum = 0;
        for (int64_t j = 1; j < h->words; j++)
            most = fmaxf(most, to_float(row[j]));
        for (int64_t j = 0; j < h->words; j++)
            sum += expf(to_float(row[j]) - most);
        h->lse[i] = most + logf(sum);
        h->hit[i] = to_float(row[h->labels[i]]);
    }
}

static void gradient_loop(head *h) {
    const float scale = 1 / (float)h->tokens;
    for (int64_t i = 0; i < h->tokens; i++)
        for (int64_t j = 0; j < h->words; j++) {
            bf16 *at = &h->logits[i * h->words + j];
            const float d = (expf(to_float(*at) - h->lse[i]) - (float)(j == h->labels[i])) * scale;
            uint32_t bits;
            memcpy(&bits, &d, sizeof bits);
            *at = (bf16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16); /* to nearest, ties to even */
        }
}

static void store_logits(head *h) {
    gemmepi_matmul_desc desc = {.m = h->tokens, .n = h->words, .k = h->width};
    gemmepi_matmul_args args = {.a = h->x, .b = h->w, .d = h->logits};
    desc.a.dtype = GEMMEPI_BF16;
    desc.b.transposed = 1;
    run(&desc, &args);
}

/* dx = dlogits w and dw = dlogits^T x, of what the logits have become. */
static void gradient_products(head *h) {
    gemmepi_matmul_desc of_x = {.m = h->tokens, .n = h->width, .k = h->words};
    gemmepi_matmul_desc of_w = {.m = h->words, .n = h->width, .k = h->tokens};
    gemmepi_matmul_args x_args = {.a = h->logits, .b = h->w, .d = h->dx};
    gemmepi_matmul_args w_args = {.a = h->logits, .b = h->x, .d = h->dw};
    of_x.a.dtype = of_w.a.dtype = GEMMEPI_BF16;
    of_w.a.transposed = 1;
    of_w.d.dtype = GEMMEPI_F32;
    run(&of_x, &x_args);
    run(&of_w, &w_args);
}

static void loss_through_memory(head *h) {
    store_logits(h);
    if (is_host)
        loss_loop(h);
    else
        pass(h, loss_of_z, 1, NULL);
}

static void both_through_memory(head *h) {
    loss_through_memory(h);
    if (is_host)
        gradient_loop(h);
    else
        pass(h, gradient_of_z, 0, h->logits); /* in place */
    gradient_products(h);
}

static void both_by_passes(head *h) {
    store_logits(h);
    pass(h, loss_of_z, 1, NULL);
    pass(h, gradient_of_z, 0, h->logits);
    gradient_products(h);
}

/* ---- against plain loops ---- */

/* In double: the loss, and both gradients. */
static double by_loops(const head *h, double *dx, double *dw) {
    double loss = 0, *v = allocate((size_t)h->words, sizeof *v);
    for (int64_t i = 0; i < h->tokens; i++) {
        double sum = 0;
        for (int64_t j = 0; j < h->words; j++) {
            v[j] = 0;
            for (int64_t s = 0; s < h->width; s++)
                v[j] += (double)to_float(h->x_here[i * h->width + s]) *
                        (double)to_float(h->w_here[j * h->width + s]);
            sum += exp(v[j]); /* they are small */
        }
        loss += (log(sum) - v[h->labels_here[i]]) / (double)h->tokens;
        for (int64_t j = 0; j < h->words; j++) {
            const double d = (exp(v[j]) / sum - (j == h->labels_here[i])) / (double)h->tokens;
            for (int64_t s = 0; s < h->width; s++) {
                dx[i * h->width + s] += d * (double)to_float(h->w_here[j * h->width + s]);
                dw[j * h->width + s] += d * (double)to_float(h->x_here[i * h->width + s]);
            }
        }
    }
    free(v);
    return loss;
}

/* The largest error over the largest value. */
static double error_of(const double *right, const bf16 *narrow, const float *wide, size_t count) {
    double worst = 0, largest = 0;
    for (size_t i = 0; i < count; i++) {
        const double error = fabs((narrow ? (double)to_float(narrow[i]) : (double)wide[i]) - right[i]);
        worst = error <= worst ? worst : error; /* a NaN stays */
        largest = fmax(largest, fabs(right[i]));
    }
    return worst / largest;
}

/* An odd size, in blocks of which the last is not full. A GPU's products need some workspace, too. */
static void check_way(const char *name, void (*way)(head *)) {
    head h = {.tokens = 2999, .words = 301, .width = 24, .limit = 1 << 20};
    if (!is_host)
        h.words = 3001, h.limit = 16 << 20;
    const size_t of_x = (size_t)(h.tokens * h.width), of_w = (size_t)(h.words * h.width);
    double *dx = allocate(of_x, sizeof *dx), *dw = allocate(of_w, sizeof *dw);
    bf16 *dx_here = allocate(of_x, sizeof *dx_here);
    float *dw_here = allocate(of_w, sizeof *dw_here);
    open_head(&h);
    h.logits = room((size_t)(h.tokens * h.words) * sizeof(bf16));
    way(&h);
    check(gemmepi_download(context, dx_here, h.dx, of_x * sizeof *dx_here, NULL));
    check(gemmepi_download(context, dw_here, h.dw, of_w * sizeof *dw_here, NULL));
    const double loss = by_loops(&h, dx, dw), of_loss = fabs(mean_loss(&h) - loss) / loss;
    const double off_x = error_of(dx, dx_here, NULL, of_x), off_w = error_of(dw, NULL, dw_here, of_w);
    printf("%-16s against plain loops: loss within %.0e, dx within %.0e, dw within %.0e\n", name, of_loss,
           off_x, off_w);
    if (!(of_loss < 1e-3 && off_x < 0.01 && off_w < 0.01)) /* a NaN too; logits, dlogits and dx are BF16 */
        fail(name, "that is not what plain loops give");
    close_head(&h);
    free(dx), free(dw), free(dx_here), free(dw_here);
}

/* ---- against the way through memory ---- */

/* A way's median time of some runs, behind one that plans and compiles, and its workspace. */
typedef struct cost {
    double time, megabytes;
} cost;

static cost cost_of(head *h, void (*way)(head *)) {
    enum { RUNS = 5 };
    const int runs = is_host ? 1 : RUNS;
    double times[RUNS];
    size_t bytes = 0;
    if (!is_host) {
        most_workspace = &bytes;
        way(h);
        most_workspace = NULL;
    }
    for (int i = 0; i < runs; i++) {
        check(gemmepi_synchronize(context, NULL));
        const double began = milliseconds();
        way(h);
        check(gemmepi_synchronize(context, NULL));
        const double took = milliseconds() - began;
        int at = i; /* sorted in */
        for (; at > 0 && times[at - 1] > took; at--)
            times[at] = times[at - 1];
        times[at] = took;
    }
    return (cost){times[runs / 2], 1e-6 * (double)bytes};
}

static void show(const char *way, cost of_loss, cost of_both) {
    printf("%-16s %9.2f ms %9.2f MB    %9.2f ms %9.2f MB\n", way, of_loss.time, of_loss.megabytes,
           of_both.time, of_both.megabytes);
}

static void race(int64_t tokens, int64_t words, int64_t width) {
    head h = {.tokens = tokens, .words = words, .width = width};
    const size_t bytes = (size_t)(tokens * words) * sizeof(bf16);
    open_head(&h);
    cost formulas = cost_of(&h, loss_alone), both_formulas = cost_of(&h, loss_and_gradient);
    const double loss = mean_loss(&h);
    h.logits = room(bytes);
    cost memory = cost_of(&h, loss_through_memory), both_memory = cost_of(&h, both_through_memory);
    const double other = mean_loss(&h);
    memory.megabytes += 1e-6 * (double)bytes, both_memory.megabytes += 1e-6 * (double)bytes;

    printf("\n%d tokens, %d words, width %d, BF16; logits and workspace in MB\n", (int)tokens, (int)words,
           (int)width);
    printf("                                  loss             loss and gradient\n");
    show("by formulas", formulas, both_formulas);
    show("through memory", memory, both_memory);
    if (is_host)
        printf("(the host evaluates formulas slowly: these times say nothing of a GPU's)\n");
    printf("loss %.5f, through memory %.5f, where logits are rounded to BF16\n", loss, other);
    if (formulas.megabytes < memory.megabytes)
        printf("memory that was not needed: %.2f MB, with the gradient %.2f MB\n",
               memory.megabytes - formulas.megabytes, both_memory.megabytes - both_formulas.megabytes);
    else
        printf("here no memory is saved: the route that runs the formula has v in workspace\n");
    if (!(fabs(loss - other) < 0.01 * loss))
        fail("loss", "both ways should give the same");
    close_head(&h);
}

/* The device, if it runs these formulas, else the host. */
static void open_context(int device) {
    const gemmepi_config config = {.device = device}, host = {.device = GEMMEPI_DEVICE_HOST};
    const gemmepi_operand lse = operand("lse", GEMMEPI_PER_ROW, GEMMEPI_F32, 1);
    gemmepi_matmul_desc probe = {.m = 64, .n = 64, .k = 64, .formula = "lse = row_logsumexp(v)"};
    gemmepi_context_details details;
    gemmepi_plan *plan;
    probe.operands = &lse, probe.operand_count = 1;
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
    int device = 0, is_small = 0, is_large = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--host"))
            device = GEMMEPI_DEVICE_HOST;
        else if (!strcmp(argv[i], "--small"))
            is_small = 1;
        else if (!strcmp(argv[i], "--large"))
            is_large = 1;
        else if (!strcmp(argv[i], "--help"))
            return puts("cross_entropy [--small | --large] [--host]\n  --small  64 tokens, 2000 words\n"
                        "  --large  8192 tokens, 131072 words, width 4096: 14 GB of memory\n"
                        "  --host   not on the GPU") < 0;
        else
            fail(argv[i], "known are --small, --large, --host and --help");
    }
    open_context(device);
    check_way("by formulas,", loss_and_gradient);
    check_way("through memory,", both_by_passes);
    if (is_small)
        race(64, 2000, 64);
    else if (is_large)
        race(8192, 131072, 4096);
    else if (is_host)
        race(512, 8000, 128);
    else
        race(8192, 50304, 768);
    gemmepi_destroy(context);
    return 0;
}
