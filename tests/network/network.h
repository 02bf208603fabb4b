/* Networks to test with: drawn from a seed, run through the public interface, and held against plain loops in double that round where a
   network stores. Of src/ nothing is used. */
#ifndef GEMMEPI_TESTS_NETWORK_H
#define GEMMEPI_TESTS_NETWORK_H

#include "../products/problem.h"

enum { MOST_LAYERS = 6, MOST_ROWS = 600, MOST_WIDTH = 96, MOST = MOST_ROWS * MOST_WIDTH };

/* Numbers on the device, and as they are read back. */
typedef struct held {
    gemmepi_dtype dtype;
    int count;
    double *at;
    void *there;
} held;

/* What a layer's activation is: by name, or a text with operands beta [width], up [rows, width], rate [] and twice. */
typedef struct action {
    const char *formula;
    gemmepi_epilogue activation;
    double slope, bend; /* bounds of the first two derivatives, for arguments to 8 */
    double parameter;   /* of the name; 0: none */
} action;

typedef struct network {
    test_device *on;
    int in_one_kernel; /* on a GPU */
    int is_tf32;       /* F32's products */
    int rows, input, count, width[MOST_LAYERS], x_ld, y_ld;
    gemmepi_dtype dtype, gradient;
    uint64_t flags;
    const action *acts[MOST_LAYERS];
    held x, y, dy, dx, w[MOST_LAYERS], bias[MOST_LAYERS], dw[MOST_LAYERS], dbias[MOST_LAYERS];
    held beta[MOST_LAYERS], up[MOST_LAYERS], rate[MOST_LAYERS], dbeta[MOST_LAYERS];
    double twice;
    gemmepi_network_layer layers[MOST_LAYERS];
    gemmepi_operand operands[MOST_LAYERS][5];
    void *pointers[MOST_LAYERS][5];
    void *const *lists[MOST_LAYERS];
    const void *ws[MOST_LAYERS], *biases[MOST_LAYERS];
    void *dws[MOST_LAYERS], *dbiases[MOST_LAYERS], *saved;
    gemmepi_network_desc desc;
    gemmepi_network_args args;
} network;

static void must(gemmepi_status status) {
    CHECK(status == GEMMEPI_OK, "%s", gemmepi_last_error());
}

static held hold(const network *net, gemmepi_dtype dtype, int count, rng *random, double most, double step) {
    const size_t size = gemmepi_dtype_size(dtype);
    unsigned char *bytes = (unsigned char *)calloc((size_t)count + 1, size);
    held h = {0};
    int i;
    h.dtype = dtype, h.count = count, h.at = (double *)calloc((size_t)count + 1, sizeof(double));
    for (i = 0; i < count; i++) {
        double value = random ? most * (rng_below(random, 2001) - 1000) / 1000.0 : 0.25;
        oracle_encode(dtype, bytes + (size_t)i * size, step > 0 ? step * nearbyint(value / step) : value);
        h.at[i] = oracle_decode(dtype, bytes + (size_t)i * size);
    }
    must(gemmepi_alloc(net->on->context, (size_t)count * size + 16, &h.there));
    must(gemmepi_upload(net->on->context, h.there, bytes, (size_t)count * size, net->on->stream));
    free(bytes);
    return h;
}

static void fetch(const network *net, held *h) {
    const size_t size = gemmepi_dtype_size(h->dtype);
    unsigned char *bytes = (unsigned char *)malloc((size_t)h->count * size + 1);
    int i;
    must(gemmepi_download(net->on->context, bytes, h->there, (size_t)h->count * size, net->on->stream));
    for (i = 0; i < h->count; i++)
        h->at[i] = oracle_decode(h->dtype, bytes + (size_t)i * size);
    free(bytes);
}

static void put(const network *net, held *h, int i, double value) {
    unsigned char bytes[8];
    oracle_encode(h->dtype, bytes, value);
    h->at[i] = oracle_decode(h->dtype, bytes);
    must(gemmepi_upload(net->on->context, (char *)h->there + (size_t)i * gemmepi_dtype_size(h->dtype), bytes,
                        gemmepi_dtype_size(h->dtype), net->on->stream));
}

static void drop(const network *net, held *h) {
    free(h->at);
    must(gemmepi_free(net->on->context, h->there));
    memset(h, 0, sizeof *h);
}

static int inputs_of(const network *net, int i) {
    return i ? net->width[i - 1] : net->input;
}

static int has(const network *net, uint64_t flag) {
    return (net->flags & flag) != 0;
}

static void add_operand(network *net, int i, const char *name, gemmepi_operand_kind kind, const held *h,
                        int output) {
    gemmepi_network_layer *layer = &net->layers[i];
    gemmepi_operand *to = &net->operands[i][layer->operand_count];
    memset(to, 0, sizeof *to);
    to->name = name, to->kind = kind, to->dtype = h ? h->dtype : GEMMEPI_DTYPE_DEFAULT, to->output = output;
    net->pointers[i][layer->operand_count++] = h ? h->there : gemmepi_number(&net->twice);
}

static void open_operands(network *net, int i, rng *random) {
    const char *text = net->acts[i]->formula;
    const int width = net->width[i];
    if (!text)
        return;
    net->layers[i].formula = text, net->layers[i].operands = net->operands[i];
    net->lists[i] = net->pointers[i];
    if (strstr(text, "beta")) {
        net->beta[i] = hold(net, net->dtype, width, random, 1, 0);
        add_operand(net, i, "beta", GEMMEPI_PER_COLUMN, &net->beta[i], 0);
        net->dbeta[i] = hold(net, net->gradient, width, NULL, 0, 0);
    }
    if (strstr(text, "up")) {
        net->up[i] = hold(net, net->dtype, net->rows * width, random, 1, 0);
        add_operand(net, i, "up", GEMMEPI_FULL, &net->up[i], 0);
    }
    if (strstr(text, "rate")) {
        net->rate[i] = hold(net, GEMMEPI_F32, 1, random, 1, 0);
        if (net->dtype == GEMMEPI_F64)
            drop(net, &net->rate[i]), net->rate[i] = hold(net, GEMMEPI_F64, 1, random, 1, 0);
        add_operand(net, i, "rate", GEMMEPI_SCALAR, &net->rate[i], 0);
    }
    if (strstr(text, "twice"))
        add_operand(net, i, "twice", GEMMEPI_NUMBER, NULL, 0);
}

/* Room and numbers for what the fields above say. step: they are multiples of it, or 0. */
static void open_network(network *net, uint64_t seed, double step) {
    rng random = rng_seeded(seed);
    const int last = net->count - 1;
    int i;
    net->twice = 2;
    net->x_ld = net->x_ld ? net->x_ld : net->input;
    net->y_ld = net->y_ld ? net->y_ld : net->width[last];
    net->x = hold(net, net->dtype, net->rows * net->x_ld, &random, step > 0 ? 2 : 1, step);
    net->dx = hold(net, net->dtype, net->rows * net->x_ld, NULL, 0, 0);
    net->y = hold(net, net->dtype, net->rows * net->y_ld, NULL, 0, 0);
    net->dy = hold(net, net->dtype, net->rows * net->y_ld, &random, step > 0 ? 2 : 1, step);
    for (i = 0; i < net->count; i++) {
        const int k = inputs_of(net, i), n = net->width[i];
        const double most = step > 0 ? 1 : 2 / sqrt(k);
        net->layers[i].width = n, net->layers[i].activation = net->acts[i]->activation;
        net->layers[i].activation_parameter = net->acts[i]->parameter;
        net->layers[i].has_parameter = net->acts[i]->parameter != 0;
        net->w[i] = hold(net, net->dtype, k * n, &random, most, step);
        net->bias[i] = hold(net, net->dtype, n, &random, 1, step);
        net->dw[i] = hold(net, net->gradient, k * n, NULL, 0, 0);
        net->dbias[i] = hold(net, net->gradient, n, NULL, 0, 0);
        net->ws[i] = net->w[i].there, net->biases[i] = net->bias[i].there;
        net->dws[i] = net->dw[i].there, net->dbiases[i] = net->dbias[i].there;
        open_operands(net, i, &random);
    }
    net->desc.rows = net->rows, net->desc.input = net->input, net->desc.layers = net->layers;
    net->desc.layer_count = net->count, net->desc.dtype = net->dtype,
    net->desc.gradient_dtype = net->gradient;
    net->desc.compute = net->is_tf32 ? GEMMEPI_COMPUTE_TF32 : GEMMEPI_COMPUTE_DEFAULT;
    net->desc.flags = net->flags, net->desc.x_ld = net->x_ld, net->desc.y_ld = net->y_ld;
    net->args.x = net->x.there, net->args.w = net->ws, net->args.y = net->y.there,
    net->args.dy = net->dy.there;
    net->args.bias = has(net, GEMMEPI_NETWORK_BIAS) ? net->biases : NULL;
    net->args.dx = has(net, GEMMEPI_NETWORK_DX) ? net->dx.there : NULL;
    net->args.dw = has(net, GEMMEPI_NETWORK_DW) ? net->dws : NULL;
    net->args.dbias = has(net, GEMMEPI_NETWORK_DW) && net->args.bias ? net->dbiases : NULL;
    net->args.operands = net->lists;
}

static void close_network(network *net) {
    int i;
    if (!net->on)
        return; /* nothing was opened: another part of the test has it */
    drop(net, &net->x), drop(net, &net->y), drop(net, &net->dx), drop(net, &net->dy);
    for (i = 0; i < net->count; i++) {
        drop(net, &net->w[i]), drop(net, &net->bias[i]), drop(net, &net->dw[i]), drop(net, &net->dbias[i]);
        drop(net, &net->beta[i]), drop(net, &net->dbeta[i]), drop(net, &net->up[i]), drop(net, &net->rate[i]);
    }
    must(gemmepi_free(net->on->context, net->saved));
    net->saved = NULL;
}

/* Whether backward has something to do. */
static int has_gradients(const network *net) {
    int i, j, count = 0;
    for (i = 0; i < net->count; i++)
        for (j = 0; j < net->layers[i].operand_count; j++)
            count += net->operands[i][j].output;
    return count || has(net, GEMMEPI_NETWORK_DX | GEMMEPI_NETWORK_DW);
}

/* Plans both directions, with room for what is saved, and runs them; planned 0: by one-shot calls. */
static void run_network(network *net, int planned) {
    gemmepi_context *context = net->on->context;
    gemmepi_plan *forward = NULL, *backward = NULL;
    gemmepi_plan_details details, of_backward;
    const int differs = has_gradients(net);
    must(gemmepi_plan_network(context, &net->desc, &forward));
    must(gemmepi_plan_info(forward, &details));
    if (has(net, GEMMEPI_NETWORK_SAVED) && details.saved_size && !net->saved) {
        must(gemmepi_alloc(context, details.saved_size, &net->saved));
        net->args.saved = net->saved, net->args.saved_size = details.saved_size;
    }
    CHECK(!net->in_one_kernel || !net->on->has_fused || details.route == GEMMEPI_ROUTE_FUSED, "route %d",
          (int)details.route);
    if (differs) {
        must(gemmepi_plan_network_backward(context, &net->desc, &backward));
        must(gemmepi_plan_info(backward, &of_backward));
        CHECK(of_backward.saved_size == details.saved_size, "forward saves %llu bytes, backward reads %llu",
              (unsigned long long)details.saved_size, (unsigned long long)of_backward.saved_size);
        CHECK(!net->in_one_kernel || !net->on->has_fused || of_backward.route == GEMMEPI_ROUTE_FUSED,
              "backward's route %d", (int)of_backward.route);
    }
    if (planned) {
        must(gemmepi_plan_prepare(forward, net->on->stream));
        must(gemmepi_run_network(forward, &net->args, net->on->stream));
        if (differs) {
            must(gemmepi_plan_prepare(backward, net->on->stream));
            must(gemmepi_run_network_backward(backward, &net->args, net->on->stream));
        }
    } else {
        must(gemmepi_network(context, &net->desc, &net->args, net->on->stream));
        if (differs)
            must(gemmepi_network_backward(context, &net->desc, &net->args, net->on->stream));
    }
    gemmepi_plan_destroy(forward);
    gemmepi_plan_destroy(backward);
}

#endif
