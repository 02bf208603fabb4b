/* The rows of networks: forward against a copy that reads x and writes y, and against the same layers one after another; forward and
   backward with dw against the same by layers, with what backward reads saved. Part of main.c. */
#include "bench.h"

typedef struct network_form {
    const char *name;
    gemmepi_epilogue activation;
    const char *formula; /* in its place */
    int width, layers;
    double speed, forward, training; /* bounds: of a copy at least, of the layers at most */
} network_form;

static const network_form network_forms[] = {
    {"SILU 64 x 4", GEMMEPI_SILU, NULL, 64, 4, .8, .33, .4},
    {"RELU 64 x 4", GEMMEPI_RELU, NULL, 64, 4, .8, .33, .4},
    {"sines 64 x 4", 0, "d = sin(30 * v)", 64, 4, .8, .33, .4},
    {"RELU 32 x 2", GEMMEPI_RELU, NULL, 32, 2, .8, .33, .4},
    {"SILU 128 x 4", GEMMEPI_SILU, NULL, 128, 4, .8, .33, .4},
};

/* What a form is held against. */
enum { NETWORK_AND_COPY, NETWORK_AND_LAYERS, NETWORK_TRAINING, NETWORK_ROWS };

enum { NETWORK_MOST_LAYERS = 4 };

typedef struct network_recipe {
    const network_form *form;
    int against;
} network_recipe;

static network_recipe network_recipes[COUNT(network_forms) * NETWORK_ROWS];

typedef struct network_work {
    network_recipe recipe;
    size_t rows, matrix, saved; /* bytes of x, of what is kept */
    char *x, *y, *dy, *between[2], *kept, *weights;
    const void *w[NETWORK_MOST_LAYERS], *bias[NETWORK_MOST_LAYERS];
    void *dw[NETWORK_MOST_LAYERS], *dbias[NETWORK_MOST_LAYERS];
    gemmepi_network_layer layers[NETWORK_MOST_LAYERS];
    gemmepi_network_args args;
    gemmepi_plan *forward, *backward, *saving, *saved_backward, *by_layers;
} network_work;

/* 2^20 rows where tensors may have 256 MiB. */
static size_t network_rows_of(size_t size) {
    size_t rows = size / 256;
    return rows < 256 ? 256 : rows > (size_t)1 << 20 ? (size_t)1 << 20 : rows;
}

static size_t network_weights(const network_form *f) {
    return (size_t)(f->width + 1) * (size_t)f->width * 2 + 512;
}

static void network_lay_out(network_work *w, const network_recipe *recipe, size_t size) {
    memset(w, 0, sizeof *w);
    w->recipe = *recipe;
    w->rows = network_rows_of(size);
    w->matrix = w->rows * (size_t)recipe->form->width * 2;
    w->saved = 2 * (size_t)recipe->form->layers * (w->matrix + 256);
}

static size_t network_memory(const bench_row *row, size_t size) {
    network_work w;
    network_lay_out(&w, row->recipe, size);
    return 5 * w.matrix + w.saved + 2 * NETWORK_MOST_LAYERS * network_weights(w.recipe.form);
}

static void network_place(network_work *w, char *memory) {
    const network_form *f = w->recipe.form;
    const size_t vector = (size_t)f->width * (size_t)f->width * 2;
    int i;
    w->x = memory, w->y = w->x + w->matrix, w->dy = w->y + w->matrix;
    w->between[0] = w->dy + w->matrix, w->between[1] = w->between[0] + w->matrix;
    w->kept = w->between[1] + w->matrix, w->weights = w->kept + w->saved;
    for (i = 0; i < f->layers; i++) {
        char *at = w->weights + 2 * (size_t)i * network_weights(f),
             *gradient = at + network_weights(f) / 256 * 256;
        w->w[i] = at, w->bias[i] = at + vector, w->dw[i] = gradient, w->dbias[i] = gradient + vector;
        w->layers[i].width = f->width, w->layers[i].activation = f->activation,
        w->layers[i].formula = f->formula;
    }
    w->args.x = w->x, w->args.y = w->y, w->args.dy = w->dy, w->args.w = w->w, w->args.bias = w->bias;
    w->args.dw = w->dw, w->args.dbias = w->dbias;
}

static int network_fill(bench *b, const network_work *w) {
    return bench_fill(b, w->x, GEMMEPI_F16, w->matrix, 0) &&
           bench_fill(b, w->dy, GEMMEPI_F16, w->matrix, 1) && bench_set_bytes(b, w->y, 0xff, w->matrix) &&
           bench_fill(b, w->weights, GEMMEPI_F16, 2 * NETWORK_MOST_LAYERS * network_weights(w->recipe.form),
                      2);
}

static int network_plan(bench *b, network_work *w, uint64_t flags, int backward, gemmepi_plan **plan) {
    gemmepi_network_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.rows = (int64_t)w->rows, desc.input = w->recipe.form->width;
    desc.layers = w->layers, desc.layer_count = w->recipe.form->layers;
    desc.dtype = GEMMEPI_F16;
    desc.flags = GEMMEPI_NETWORK_BIAS | GEMMEPI_NETWORK_DW | flags;
    return bench_ok(b, backward ? gemmepi_plan_network_backward(b->context, &desc, plan)
                                : gemmepi_plan_network(b->context, &desc, plan)) &&
           bench_ok(b, gemmepi_plan_prepare(*plan, b->stream));
}

/* One layer alone, of which all are alike. */
static int network_plan_layer(bench *b, network_work *w) {
    const network_form *f = w->recipe.form;
    gemmepi_linear_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.m = (int64_t)w->rows, desc.n = desc.k = f->width;
    desc.a.dtype = GEMMEPI_F16, desc.activation = f->activation, desc.formula = f->formula;
    desc.flags = GEMMEPI_LINEAR_BIAS;
    return bench_ok(b, gemmepi_plan_linear(b->context, &desc, &w->by_layers)) &&
           bench_ok(b, gemmepi_plan_prepare(w->by_layers, b->stream));
}

static int network_run(bench *b, void *user) {
    network_work *w = user;
    return bench_ok(b, gemmepi_run_network(w->forward, &w->args, b->stream)) &&
           (!w->backward || bench_ok(b, gemmepi_run_network_backward(w->backward, &w->args, b->stream)));
}

static int network_run_layers(bench *b, void *user) {
    network_work *w = user;
    const int last = w->recipe.form->layers - 1;
    int i;
    for (i = 0; i <= last; i++) {
        gemmepi_linear_args args;
        memset(&args, 0, sizeof args);
        args.a = i ? w->between[i % 2] : w->x, args.b = w->w[i], args.bias = w->bias[i];
        args.y = i == last ? w->y : w->between[(i + 1) % 2];
        if (!bench_ok(b, gemmepi_run_linear(w->by_layers, &args, b->stream)))
            return 0;
    }
    return 1;
}

static int network_run_saved(bench *b, void *user) {
    network_work *w = user;
    gemmepi_network_args args = w->args;
    args.saved = w->kept, args.saved_size = w->saved;
    return bench_ok(b, gemmepi_run_network(w->saving, &args, b->stream)) &&
           bench_ok(b, gemmepi_run_network_backward(w->saved_backward, &args, b->stream));
}

static int network_copy(bench *b, void *user) {
    network_work *w = user;
    return bench_copy(b, w->between[0], w->x, w->matrix);
}

/* Once more, of which y is to have no NaN of those that were there. */
static int network_check(bench *b, void *user) {
    network_work *w = user;
    unsigned char element[2];
    size_t at;
    if (!network_fill(b, w) || !network_run(b, w))
        return 0;
    for (at = 0; at < w->matrix; at += w->matrix / 16) {
        if (!bench_ok(b, gemmepi_download(b->context, element, w->y + at, sizeof element, b->stream)))
            return 0;
        if (element[0] == 0xff && element[1] == 0xff)
            return bench_fail(b, "y was not written at byte %lu", (unsigned long)at);
    }
    return 1;
}

static void network_close(bench_job *job) {
    network_work *w = job->user;
    gemmepi_plan_destroy(w->forward), gemmepi_plan_destroy(w->backward), gemmepi_plan_destroy(w->by_layers);
    gemmepi_plan_destroy(w->saving), gemmepi_plan_destroy(w->saved_backward);
    free(w);
}

static int network_open(bench *b, const bench_row *row, bench_job *job) {
    network_work *w = malloc(sizeof *w);
    gemmepi_plan_details details;
    int against, opened;
    if (!w)
        return bench_fail(b, "out of memory");
    network_lay_out(w, row->recipe, b->size);
    network_place(w, b->memory);
    against = w->recipe.against;
    job->user = w, job->check = network_check;
    job->calls[BENCH_OURS] = network_run;
    job->calls[BENCH_OTHER] = against == NETWORK_AND_COPY     ? network_copy
                              : against == NETWORK_AND_LAYERS ? network_run_layers
                                                              : network_run_saved;
    job->bytes = against == NETWORK_AND_COPY ? 2 * (double)w->matrix : 0;
    opened = network_plan(b, w, 0, 0, &w->forward) && bench_ok(b, gemmepi_plan_info(w->forward, &details)) &&
             network_fill(b, w);
    job->launches = opened ? details.launches : 0;
    if (opened && against == NETWORK_AND_LAYERS)
        opened = network_plan_layer(b, w);
    if (opened && against == NETWORK_TRAINING)
        opened = network_plan(b, w, 0, 1, &w->backward) &&
                 network_plan(b, w, GEMMEPI_NETWORK_SAVED, 0, &w->saving) &&
                 network_plan(b, w, GEMMEPI_NETWORK_SAVED, 1, &w->saved_backward);
    if (!opened)
        network_close(job);
    return opened;
}

static void network_rows(bench_list *list) {
    static const char *const against[] = {"", " and its layers", " forward and backward"};
    int i;
    for (i = 0; i < COUNT(network_recipes) && list->count < BENCH_MOST_ROWS; i++) {
        const network_form *f = network_forms + i / NETWORK_ROWS;
        bench_row *row = list->rows + list->count++;
        network_recipe *recipe = network_recipes + i;
        recipe->form = f, recipe->against = i % NETWORK_ROWS;
        memset(row, 0, sizeof *row);
        row->kind = recipe->against == NETWORK_AND_COPY ? BENCH_SPEED : BENCH_ADDED;
        row->group = "networks";
        snprintf(row->name, sizeof row->name, "network %s%s", f->name, against[recipe->against]);
        snprintf(row->dtype, sizeof row->dtype, "F16");
        row->bound = recipe->against == NETWORK_AND_COPY     ? f->speed
                     : recipe->against == NETWORK_AND_LAYERS ? f->forward
                                                             : f->training;
        row->recipe = recipe;
        row->memory = network_memory;
        row->open = network_open;
        row->close = network_close;
    }
}
