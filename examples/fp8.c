/* Learns to read handwritten digits twice, in F32 and in fp8: weights and activations in E4M3, gradients in E5M2, sums and the weights
   that learn in F32. Each fp8 result has its scale from the largest magnitudes of the runs before (delayed scaling): the histories are on
   the device, and while it learns the host reads nothing back but the loss of an epoch.

       fp8 [path to digits.csv] */
#define GEMMEPI_IMPLEMENTATION
#include "gemmepi.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIXELS = 64, HIDDEN = 64, CLASSES = 10, BATCH = 32, MOST = 2000, HISTORY = 16, EPOCHS = 12 };

static gemmepi_context *context;

static void check(gemmepi_status status) {
    if (status != GEMMEPI_OK) {
        fprintf(stderr, "%s: %s\n", gemmepi_status_name(status), gemmepi_last_error());
        exit(1);
    }
}

static void *blocks[64]; /* of the device, to be freed at the end */
static int block_count;

static void *to_device(const void *data, size_t bytes) {
    void **device = &blocks[block_count++];
    check(gemmepi_alloc_from(context, data, bytes, device));
    return *device;
}

/* A matrix on the device; in fp8 with its scale, with the amax of earlier runs if products find the scale, and with the transposed
   layout if a product reads it along its rows. */
typedef struct matrix {
    void *data;
    gemmepi_dtype dtype;
    float *scale, *history;
    void *transposed;
} matrix;

static const float zeros[MOST * PIXELS];

static matrix new_matrix(const void *data, int elements, gemmepi_dtype dtype, int finds_scale) {
    matrix made = {to_device(data, (size_t)elements * sizeof(float)), dtype, NULL, NULL, NULL};
    if (dtype != GEMMEPI_F32)
        made.scale = to_device(zeros, sizeof(float));
    if (finds_scale && dtype != GEMMEPI_F32)
        made.history = to_device(zeros, HISTORY * sizeof(float));
    return made;
}

/* y = x in y's type; an fp8 y has the scale of its own amax, and both layouts are made of one read. */
static void cast(matrix x, matrix y, int rows, int columns) {
    const int64_t shape[2] = {rows, columns}, exchanged[2] = {columns, rows};
    const gemmepi_tensor from = {.dtype = x.dtype, .rank = 2, .shape = shape},
                         to = {.dtype = y.dtype, .rank = 2, .shape = shape},
                         turned = {.dtype = y.dtype, .rank = 2, .shape = exchanged};
    const gemmepi_elementwise_desc desc = {.operation = GEMMEPI_OP_CAST,
                                           .a = &from,
                                           .y = &to,
                                           .y_transposed = y.transposed ? &turned : NULL,
                                           .flags = y.scale ? GEMMEPI_CAST_Y_SCALE : 0};
    const gemmepi_elementwise_args args = {
        .a = x.data, .y = y.data, .y_transposed = y.transposed, .y_scale = y.scale};
    check(gemmepi_elementwise(context, &desc, &args, NULL));
}

/* d of types and scales as the matrices have them; desc and args have the rest. No d: the formula assigns only others. */
static void multiply(gemmepi_matmul_desc desc, matrix a, matrix b, const matrix *d,
                     gemmepi_matmul_args args) {
    desc.a.dtype = a.dtype, desc.b.dtype = b.dtype, desc.d.dtype = d ? d->dtype : GEMMEPI_F32;
    desc.a.scale.mode = a.scale ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
    desc.b.scale.mode = b.scale ? GEMMEPI_SCALE_TENSOR : GEMMEPI_SCALE_NONE;
    args.a = a.data, args.scale_a = a.scale, args.b = b.data, args.scale_b = b.scale;
    args.d = d ? d->data : NULL;
    if (d && d->history) {
        desc.flags |= GEMMEPI_FIND_SCALE_D;
        desc.d.scale.mode = GEMMEPI_SCALE_TENSOR, desc.amax_history = HISTORY;
        args.found_scale_d = d->scale, args.amax_history = d->history;
    }
    check(gemmepi_matmul(context, &desc, &args, NULL));
}

typedef struct network {
    matrix w1, w2, narrow1, narrow2;   /* weights that learn, and what products read of them */
    matrix hidden, d_hidden, d_logits; /* of a batch */
    void *mask, *lse, *loss;
} network;

/* Rows from `first` on. rate 0: their classes go to `best`; else the weights learn, and the loss is added to net->loss. */
static void read_rows(const network *net, matrix x, int32_t *labels, int32_t *best, int first, int rows,
                      double rate) {
    const gemmepi_operand label = {.name = "label", .kind = GEMMEPI_PER_ROW, .dtype = GEMMEPI_I32};
    const gemmepi_operand in_lse = {.name = "lse", .kind = GEMMEPI_PER_ROW, .dtype = GEMMEPI_F32};
    const gemmepi_operand lse = {.name = "lse", .kind = GEMMEPI_PER_ROW, .output = 1};
    const gemmepi_operand loss = {.name = "loss", .kind = GEMMEPI_SCALAR, .output = 1, .accumulate = 1};
    const gemmepi_operand class = {.name = "best", .kind = GEMMEPI_PER_ROW, .output = 1};
    const gemmepi_operand answers[] = {class}, sums[] = {lse}, gradients[] = {label, in_lse, loss};
    const double factor = -rate / rows;
    matrix x_t = x;
    x_t.data = x.transposed ? (char *)x.transposed + first : NULL; /* a row of it has all digits */
    x.data = (char *)x.data + (size_t)first * PIXELS * (x.dtype == GEMMEPI_F32 ? sizeof(float) : 1);
    multiply(
        (gemmepi_matmul_desc){.m = rows, .n = HIDDEN, .k = PIXELS, .epilogue = GEMMEPI_RELU | GEMMEPI_AUX}, x,
        net->narrow1, &net->hidden, (gemmepi_matmul_args){.aux = net->mask});
    gemmepi_matmul_desc logits = {.m = rows, .n = CLASSES, .k = HIDDEN};
    logits.operand_count = 1, logits.operands = rate == 0 ? answers : sums;
    logits.formula = rate == 0 ? "best = row_argmax(v)" : "lse = row_logsumexp(v)";
    multiply(logits, net->hidden, net->narrow2, NULL,
             (gemmepi_matmul_args){.operands = (void *[]){rate == 0 ? (void *)(best + first) : net->lse}});
    if (rate == 0)
        return;
    logits.formula = "d = exp(v - lse) - (column == label); loss = all_sum(column == label ? lse - v : 0)";
    logits.operand_count = 3, logits.operands = gradients;
    multiply(logits, net->hidden, net->narrow2, &net->d_logits,
             (gemmepi_matmul_args){.operands = (void *[]){labels + first, net->lse, net->loss}});
    gemmepi_matmul_desc back = {
        .m = rows, .n = HIDDEN, .k = CLASSES, .epilogue = GEMMEPI_RELU | GEMMEPI_BACKWARD};
    back.b.transposed = 1;
    multiply(back, net->d_logits, net->narrow2, &net->d_hidden, (gemmepi_matmul_args){.aux = net->mask});
    gemmepi_matmul_desc learn = {.m = HIDDEN, .n = CLASSES, .k = rows, .flags = GEMMEPI_ACCUMULATE};
    learn.a.transposed = 1; /* w -= rate / rows * a^T gradient */
    multiply(learn, net->hidden, net->d_logits, &net->w2, (gemmepi_matmul_args){.alpha = &factor});
    learn.m = PIXELS, learn.n = HIDDEN;
    learn.a.transposed = !x.transposed, learn.a.ld = x.transposed ? MOST : 0;
    multiply(learn, x.transposed ? x_t : x, net->d_hidden, &net->w1, (gemmepi_matmul_args){.alpha = &factor});
    cast(net->w1, net->narrow1, PIXELS, HIDDEN);
    cast(net->w2, net->narrow2, HIDDEN, CLASSES);
}

typedef struct digits {
    float pixels[MOST][PIXELS]; /* 0 to 1 */
    int32_t classes[MOST];
    int known, unknown;
} digits;

/* The loss of each epoch; returns the percentage of the unknown digits that are read right. */
static double learn(const digits *all, int is_fp8, double losses[EPOCHS]) {
    const gemmepi_dtype narrow = is_fp8 ? GEMMEPI_E4M3 : GEMMEPI_F32,
                        gradient = is_fp8 ? GEMMEPI_E5M2 : GEMMEPI_F32;
    static float weights[PIXELS * HIDDEN + HIDDEN * CLASSES];
    static int32_t best[MOST];
    uint32_t random = 1;
    int right = 0;
    for (int i = 0; i < PIXELS * HIDDEN + HIDDEN * CLASSES; i++) { /* uniform between -0.3 and 0.3 */
        random = random * 1664525 + 1013904223;
        weights[i] = ((float)(random >> 8) / 8388608 - 1) * 0.3f;
    }
    const network net = {new_matrix(weights, PIXELS * HIDDEN, GEMMEPI_F32, 0),
                         new_matrix(weights + PIXELS * HIDDEN, HIDDEN * CLASSES, GEMMEPI_F32, 0),
                         new_matrix(zeros, PIXELS * HIDDEN, narrow, 0),
                         new_matrix(zeros, HIDDEN * CLASSES, narrow, 0),
                         new_matrix(zeros, BATCH * HIDDEN, narrow, 1),
                         new_matrix(zeros, BATCH * HIDDEN, gradient, 1),
                         new_matrix(zeros, BATCH * CLASSES, gradient, 1),
                         to_device(zeros, BATCH * 128 / 8), /* the mask's lines are of 128 bits */
                         to_device(zeros, BATCH * sizeof(float)),
                         to_device(zeros, sizeof(float))};
    const matrix pixels = new_matrix(all->pixels, MOST * PIXELS, GEMMEPI_F32, 0);
    matrix x = new_matrix(zeros, MOST * PIXELS, narrow, 0);
    int32_t *labels = to_device(all->classes, sizeof all->classes), *answers = to_device(zeros, sizeof best);
    if (is_fp8) /* forward reads the digits along their pixels, the gradient of w1 along the batch */
        x.transposed = to_device(zeros, MOST * PIXELS);
    cast(pixels, x, MOST, PIXELS), cast(net.w1, net.narrow1, PIXELS, HIDDEN),
        cast(net.w2, net.narrow2, HIDDEN, CLASSES);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        float loss;
        check(gemmepi_upload(context, net.loss, zeros, sizeof loss, NULL));
        for (int first = 0; first + BATCH <= all->known; first += BATCH)
            read_rows(&net, x, labels, answers, first, BATCH, 0.3 * (EPOCHS - epoch) / EPOCHS);
        check(gemmepi_download(context, &loss, net.loss, sizeof loss, NULL));
        losses[epoch] = loss / (float)(all->known / BATCH * BATCH);
    }
    for (int first = MOST - all->unknown; first < MOST; first += BATCH)
        read_rows(&net, x, labels, answers, first, MOST - first < BATCH ? MOST - first : BATCH, 0);
    check(gemmepi_download(context, best, answers, sizeof best, NULL));
    for (int i = MOST - all->unknown; i < MOST; i++)
        right += best[i] == all->classes[i];
    return 100.0 * right / all->unknown;
}

/* Every fourth digit is not learnt: those go to the end. */
static void load(const char *path, digits *all) {
    float line[PIXELS + 1];
    int numbers = 0;
    FILE *file = fopen(path, "r");
    while (file && all->known + all->unknown < MOST && fscanf(file, "%f%*1[,\n]", &line[numbers]) == 1)
        if (++numbers == PIXELS + 1) {
            int i = (all->known + all->unknown) % 4 == 3 ? MOST - ++all->unknown : all->known++;
            for (int j = 0; j < PIXELS; j++)
                all->pixels[i][j] = line[j] / 16;
            all->classes[i] = (int32_t)line[PIXELS];
            numbers = 0;
        }
    if (!file || all->known < BATCH || fclose(file)) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(1);
    }
}

int main(int argc, char **argv) {
    static digits all;
    gemmepi_context_details details;
    double losses[2][EPOCHS], right[2];
    load(argc > 1 ? argv[1] : "data/digits.csv", &all);
    check(gemmepi_create(NULL, &context));
    check(gemmepi_context_info(context, &details));
    if (details.fallback_reason[0])
        fprintf(stderr, "no GPU is used: %s\n", details.fallback_reason);
    for (int is_fp8 = 0; is_fp8 < 2; is_fp8++)
        right[is_fp8] = learn(&all, is_fp8, losses[is_fp8]);
    printf("epoch   loss in F32   in fp8\n");
    for (int epoch = 0; epoch < EPOCHS; epoch++)
        printf("%5d   %11.4f   %6.4f\n", epoch + 1, losses[0][epoch], losses[1][epoch]);
    printf("of %d digits that neither has seen F32 reads %.1f %% right and fp8 %.1f %%\n", all.unknown,
           right[0], right[1]);
    while (block_count)
        check(gemmepi_free(context, blocks[--block_count]));
    gemmepi_destroy(context);
    return 0;
}
