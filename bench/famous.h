/* The products of well-known models, by name: each layer forward and backward at the tokens of a training step, forward at those of
   a prompt, and at the few of decoding. BF16, dense lines, a weight stored [out, in]. No GPU is needed to list them. */
#ifndef GEMMEPI_BENCH_FAMOUS_H
#define GEMMEPI_BENCH_FAMOUS_H

#include "draw.h"

enum { FAMOUS_NAME = 64, FAMOUS_SEED = -1 /* in CSVs, where drawn rows have theirs */ };

/* >>layers */

/* Bits: how a layer is used. */
enum {
    FAMOUS_TRAIN = 1,  /* forward with what backward needs saved, and both gradients */
    FAMOUS_PROMPT = 2, /* forward alone */
    FAMOUS_DECODE = 4,
    FAMOUS_ALL = FAMOUS_TRAIN | FAMOUS_PROMPT | FAMOUS_DECODE
};

/* Y [tokens, out] = X [tokens, in] W^T. out of a gate counts both halves. */
typedef struct famous_layer {
    const char *model, *name;
    int tokens; /* of a training step */
    int64_t out, in;
    gemmepi_epilogue forward;
    gemmepi_epilogue before; /* the activation that made X, whose gradient goes into dX; 0: none */
    int uses;
} famous_layer;

#define FAMOUS_SWIGLU          (GEMMEPI_SILU | GEMMEPI_GATED | GEMMEPI_GATE_FIRST)
#define FAMOUS_GELU            (GEMMEPI_BIAS | GEMMEPI_GELU_TANH)
#define FAMOUS_BIASED_RESIDUAL (GEMMEPI_BIAS | GEMMEPI_RESIDUAL)

/* Llama-3-8B, Qwen2.5-0.5B and GPT-2 124M. `k` is the projection to keys, by itself as some programs have it; qkv is all three in one.
   GPT-2 trains on 16 sequences of 1024 tokens, its vocabulary padded from 50257. A prompt needs its last token's vocabulary alone. */
static const famous_layer famous_layers[] = {
    {"llama", "qkv", 8192, 6144, 4096, GEMMEPI_NONE, 0, FAMOUS_ALL},
    {"llama", "k", 8192, 1024, 4096, GEMMEPI_NONE, 0, FAMOUS_TRAIN},
    {"llama", "o", 8192, 4096, 4096, GEMMEPI_RESIDUAL, 0, FAMOUS_ALL},
    {"llama", "gate_up", 8192, 28672, 4096, FAMOUS_SWIGLU, 0, FAMOUS_ALL},
    {"llama", "down", 8192, 4096, 14336, GEMMEPI_RESIDUAL, FAMOUS_SWIGLU, FAMOUS_ALL},
    {"llama", "vocabulary", 2048, 128256, 4096, GEMMEPI_NONE, 0, FAMOUS_TRAIN | FAMOUS_DECODE},

    {"qwen", "qkv", 8192, 1152, 896, GEMMEPI_BIAS, 0, FAMOUS_ALL},
    {"qwen", "k", 8192, 128, 896, GEMMEPI_BIAS, 0, FAMOUS_TRAIN},
    {"qwen", "o", 8192, 896, 896, GEMMEPI_RESIDUAL, 0, FAMOUS_ALL},
    {"qwen", "gate_up", 8192, 9728, 896, FAMOUS_SWIGLU, 0, FAMOUS_ALL},
    {"qwen", "down", 8192, 896, 4864, GEMMEPI_RESIDUAL, FAMOUS_SWIGLU, FAMOUS_ALL},
    {"qwen", "vocabulary", 2048, 151936, 896, GEMMEPI_NONE, 0, FAMOUS_TRAIN | FAMOUS_DECODE},

    {"gpt2", "qkv", 16384, 2304, 768, GEMMEPI_BIAS, 0, FAMOUS_ALL},
    {"gpt2", "o", 16384, 768, 768, FAMOUS_BIASED_RESIDUAL, 0, FAMOUS_ALL},
    {"gpt2", "up", 16384, 3072, 768, FAMOUS_GELU, 0, FAMOUS_ALL},
    {"gpt2", "down", 16384, 768, 3072, FAMOUS_BIASED_RESIDUAL, GEMMEPI_GELU_TANH, FAMOUS_ALL},
    {"gpt2", "vocabulary", 16384, 50304, 768, GEMMEPI_NONE, 0, FAMOUS_TRAIN | FAMOUS_DECODE},
};

/* >>what is done with a layer */

typedef enum famous_product { FAMOUS_Y, FAMOUS_DX, FAMOUS_DW } famous_product;

typedef struct famous_task {
    const char *name;
    int use;
    famous_product product;
    int tokens;            /* 0: the layer's own */
    gemmepi_dtype d_dtype; /* of dW what it is added up in */
} famous_task;

static const famous_task famous_tasks[] = {
    {"forward", FAMOUS_TRAIN, FAMOUS_Y, 0, GEMMEPI_BF16},
    {"dX", FAMOUS_TRAIN, FAMOUS_DX, 0, GEMMEPI_BF16},
    {"dW", FAMOUS_TRAIN, FAMOUS_DW, 0, GEMMEPI_BF16},
    {"dW F32", FAMOUS_TRAIN, FAMOUS_DW, 0, GEMMEPI_F32},
    {"prompt", FAMOUS_PROMPT, FAMOUS_Y, 2048, GEMMEPI_BF16},
    {"decode", FAMOUS_DECODE, FAMOUS_Y, 1, GEMMEPI_BF16},
    {"decode", FAMOUS_DECODE, FAMOUS_Y, 4, GEMMEPI_BF16},
    {"decode", FAMOUS_DECODE, FAMOUS_Y, 16, GEMMEPI_BF16},
    {"decode", FAMOUS_DECODE, FAMOUS_Y, 64, GEMMEPI_BF16},
};

/* Rows are counted through the tasks of the first layer, then of the next. */
enum { FAMOUS_MOST = COUNT(famous_layers) * COUNT(famous_tasks) };

/* Returns 0 where there is no such row. */
static int famous_find(int row, const famous_layer **layer, const famous_task **task) {
    int i;
    for (i = 0; row >= 0 && i < FAMOUS_MOST; i++) {
        *layer = famous_layers + i / COUNT(famous_tasks);
        *task = famous_tasks + i % COUNT(famous_tasks);
        if ((*layer)->uses & (*task)->use && row-- == 0)
            return 1;
    }
    return 0;
}

static int famous_tokens(const famous_layer *layer, const famous_task *task) {
    return task->tokens ? task->tokens : layer->tokens;
}

/* "llama dW F32 gate_up 8192" */
static int famous_name(int row, char *text, size_t size) {
    const famous_layer *layer;
    const famous_task *task;
    if (!famous_find(row, &layer, &task))
        return 0;
    snprintf(text, size, "%s %s %s %d", layer->model, task->name, layer->name, famous_tokens(layer, task));
    return 1;
}

/* >>the product */

/* In training the value before an activation is saved. */
static void famous_set_forward(draw_problem *p, const famous_layer *layer, const famous_task *task) {
    int saves = task->use == FAMOUS_TRAIN && draw_activation_of(layer->forward) != GEMMEPI_NONE;
    p->m = famous_tokens(layer, task), p->n = layer->out, p->k = layer->in;
    p->b_transposed = 1;
    p->epilogue = layer->forward | (saves ? GEMMEPI_AUX : 0);
}

/* dX = dY W */
static void famous_set_dx(draw_problem *p, const famous_layer *layer, const famous_task *task) {
    p->m = famous_tokens(layer, task), p->n = layer->in, p->k = layer->out;
    p->epilogue = layer->before ? layer->before | GEMMEPI_BACKWARD : GEMMEPI_NONE;
}

/* dW += dY^T X, and the sums of dY that are dbias. */
static void famous_set_dw(draw_problem *p, const famous_layer *layer, const famous_task *task) {
    p->m = layer->out, p->n = layer->in, p->k = famous_tokens(layer, task);
    p->a_transposed = 1;
    p->accumulates = 1;
    p->epilogue = layer->forward & GEMMEPI_BIAS ? GEMMEPI_BGRAD_A : GEMMEPI_NONE;
}

/* Returns 0 where there is no such row. */
static int famous_problem(int row, draw_problem *p) {
    const famous_layer *layer;
    const famous_task *task;
    memset(p, 0, sizeof *p);
    if (!famous_find(row, &layer, &task))
        return 0;
    p->dtype = GEMMEPI_BF16, p->d_dtype = task->d_dtype;
    if (task->product == FAMOUS_Y)
        famous_set_forward(p, layer, task);
    else if (task->product == FAMOUS_DX)
        famous_set_dx(p, layer, task);
    else
        famous_set_dw(p, layer, task);
    p->a_ld = draw_a_columns(p), p->b_ld = draw_b_columns(p), p->d_ld = draw_d_columns(p);
    p->aux_ld = draw_aux_columns(p), p->residual_ld = draw_d_columns(p);
    draw_settle_lines(p);
    return 1;
}

#endif
